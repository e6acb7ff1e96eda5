// Copies a run from a data folder into a bucket. Blocking.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "common/base/log.h"
#include "common/net/s3/s3_client.h"

namespace distro::server {

// Copies a folder's run into a bucket that has none, or a part of this one; run.pb comes last: with
// it the run exists there. AlreadyExists: the bucket has another run or other records. NotFound:
// the folder has no run. The caller holds the folder's lock.
absl::Status StoreFolder(S3Client* bucket, const std::string& data_dir, Log* log);

}  // namespace distro::server
