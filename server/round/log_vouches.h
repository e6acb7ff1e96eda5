// Does the log vouch for a snapshot? Whoever offers one is only believed as far as the round's own
// record goes (docs/protocol.md, "Snapshots").
#pragma once

#include "absl/status/status.h"
#include "common/base/log.h"
#include "distro/v1/snapshot.pb.h"
#include "server/log/round_log.h"
#include "server/log/snapshot_store.h"

namespace distro::server {

// OK: its round is committed, its chain hash is the log's, and its state hash is the round's
// reference (common/round_log/log_reference.h). InvalidArgument: the round is 0 or ahead of the log,
// or the state hash is another one. FailedPrecondition "diverged": another chain hash;
// "no_reference": the round is not committed yet; "no_majority": its members did not agree, so that
// it can never have a snapshot. DataLoss: the record cannot be read. Thread-safe; reads one
// record's header.
absl::Status CheckVouched(const RoundLog& round_log, const v1::SnapshotInfo& info);

// At a start, before anybody is offered one: leaves out the snapshots that the log does not vouch
// for, such as older versions took on the word of an archiver. So none of them is ever given to a
// joiner, and none makes a result go.
void LeaveOutUnvouched(const RoundLog& round_log, SnapshotStore* snapshots, Log* log);

}  // namespace distro::server
