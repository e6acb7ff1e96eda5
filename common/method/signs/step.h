// Makes and checks the step parameters of a round. Pure functions.
#pragma once

#include "absl/status/status.h"
#include "common/base/ids.h"
#include "distro/v1/round.pb.h"
#include "distro/v1/run.pb.h"

namespace distro {

// The step parameters in Open and in the record. eta_lambda is float(double(eta) * weight_decay).
// `config` is complete. `extension` as for LearningRate.
v1::StepParameters SignStep(const v1::RunConfig& config, RoundId round,
                            const v1::Extension* extension = nullptr);

// Checks that eta and eta*lambda are finite and not negative, and 0 <= beta < 1. InvalidArgument
// names the field.
absl::Status CheckSignStep(const v1::StepParameters& step);

}  // namespace distro
