// Includes Torch's streams, events and guards of a device of any type, and what waits for one. The
// only file that does.
#pragma once

#include <ATen/DeviceAccelerator.h>
#include <c10/core/DeviceGuard.h>
#include <c10/core/Event.h>
#include <c10/core/StreamGuard.h>

#include "worker/torch/torch.h"
