// Includes what a device type is registered with in Torch: operators, an allocator, guards. For
// tests with models of devices. The only file that does.
#pragma once

#include <ATen/EmptyTensor.h>
#include <ATen/detail/PrivateUse1HooksInterface.h>
#include <ATen/native/CPUFallback.h>
#include <ATen/ops/_reshape_alias_native.h>
#include <ATen/ops/as_strided_cpu_dispatch.h>
#include <ATen/ops/view_native.h>
#include <torch/library.h>

#include "worker/torch/device_streams.h"
