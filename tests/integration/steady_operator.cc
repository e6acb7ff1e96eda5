#include "tests/integration/steady_operator.h"

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <ostream>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "distro/v1/admin.grpc.pb.h"
#include "server/log/admission_store.h"
#include "server/log/disk.h"

namespace distro::testing {
namespace {

struct Admission {
  std::set<std::string> quarantined = {};
  bool paused = false;

  friend bool operator==(const Admission&, const Admission&) = default;
  friend std::ostream& operator<<(std::ostream& out, const Admission& a) {
    return out << absl::StrJoin(a.quarantined, " ") << (a.paused ? " paused" : "");
  }
};

class Operator {
 public:
  using Call = std::function<grpc::Status(grpc::ClientContext*)>;

  Operator(const ChannelOptions& channel, const std::string& data_dir)
      : admin_(v1::AdminService::NewStub(*OpenChannel(channel))),
        path_(data_dir + "/admission.pb") {}

  void Evict(const std::string& name) {
    v1::EvictRequest request;
    request.set_name(name);
    v1::EvictResponse response;
    Admission after = now_;
    after.quarantined.insert(name);
    Decide(after, [&](auto* context) { return admin_->Evict(context, request, &response); });
  }
  void Admit(const std::string& name) {
    v1::AdmitRequest request;
    request.set_name(name);
    v1::AdmitResponse response;
    Admission after = now_;
    after.quarantined.erase(name);
    Decide(after, [&](auto* context) { return admin_->Admit(context, request, &response); });
  }
  void Pause() {
    v1::PauseResponse response;
    Decide({now_.quarantined, true},
           [&](auto* context) { return admin_->Pause(context, v1::PauseRequest(), &response); });
  }
  void Resume() {
    v1::ResumeResponse response;
    Decide({now_.quarantined, false},
           [&](auto* context) { return admin_->Resume(context, v1::ResumeRequest(), &response); });
  }

 private:
  void Decide(const Admission& after, const Call& call) {
    while (!::testing::Test::HasFailure()) {
      const grpc::Status status = Answer(call);
      const Admission stored = Stored();
      // An Admit that was killed after it was stored finds nobody.
      if (status.ok() || status.error_code() == grpc::StatusCode::NOT_FOUND) {
        EXPECT_EQ(stored, after);
        break;
      }
      EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAVAILABLE) << status.error_message();
      EXPECT_TRUE(stored == now_ || stored == after) << stored;
    }
    now_ = after;
    EXPECT_EQ(Quarantined(), now_.quarantined);
  }

  static grpc::Status Answer(const Call& call) {
    grpc::ClientContext context;
    context.set_wait_for_ready(true);
    return call(&context);
  }

  Admission Stored() const {
    const auto store = server::AdmissionStore::Open(path_, server::Disk::Real());
    EXPECT_TRUE(store.ok()) << store.status();
    if (!store.ok()) return {};
    Admission admission{.paused = (*store)->value().paused()};
    for (const v1::QuarantinedWorker& entry : (*store)->value().quarantined())
      admission.quarantined.insert(entry.name());
    return admission;
  }
  std::set<std::string> Quarantined() const {
    v1::ListWorkersResponse response;
    const Call call = [&](grpc::ClientContext* context) {
      return admin_->ListWorkers(context, v1::ListWorkersRequest(), &response);
    };
    while (!Answer(call).ok() && !::testing::Test::HasFailure()) {
    }
    std::set<std::string> names;
    for (const v1::WorkerInfo& worker : response.workers()) {
      if (worker.state() == v1::MEMBER_STATE_QUARANTINED) names.insert(worker.name());
    }
    return names;
  }

  const std::unique_ptr<v1::AdminService::Stub> admin_;
  const std::string path_;
  Admission now_;  // what was answered
};

}  // namespace

void DecideSteadily(const ChannelOptions& channel, const std::string& data_dir) {
  Operator decides(channel, data_dir);
  decides.Evict("intruder");
  decides.Evict("suspect");
  decides.Admit("suspect");
  decides.Pause();
  decides.Resume();
}

}  // namespace distro::testing
