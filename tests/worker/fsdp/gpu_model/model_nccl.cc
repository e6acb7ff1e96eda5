#include "tests/worker/fsdp/gpu_model/model_nccl.h"

#include <cstring>
#include <map>
#include <string>
#include <thread>
#include <tuple>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/synchronization/mutex.h"
#include "tests/worker/fsdp/gpu_model/model_gpus.h"
#include "worker/torch/torch_backend.h"

namespace distro::worker::testing {
namespace {

using Buffers = ModelGpus::Buffers;
using AllBuffers = std::map<int, Buffers>;  // by rank

constexpr int kPolls = 4;   // until a call is accepted, at most
constexpr int kYields = 5;  // by which a rank is late, at most

// Without addresses: what has to be the same on all ranks.
struct Signature {
  std::string name;
  int64_t count = 0;
  at::ScalarType type = at::kFloat;
  int root = -1;

  size_t bytes() const { return static_cast<size_t>(count) * c10::elementSize(type); }
  std::string ToString() const {
    return absl::StrCat(name, " of ", count, " ", c10::toString(type), ", root ", root);
  }
};

void Gather(const Signature& call, const AllBuffers& all) {
  std::string whole;
  for (const auto& [rank, buffers] : all)
    whole.append(static_cast<const char*>(buffers.from), call.bytes());
  for (const auto& [rank, buffers] : all) std::memcpy(buffers.to, whole.data(), whole.size());
}

void Spread(const Signature& call, const AllBuffers& all) {
  for (const auto& [rank, buffers] : all)
    std::memmove(buffers.to, all.at(call.root).from, call.bytes());
}

at::Tensor SumOf(const AllBuffers& all, int64_t elements, at::ScalarType type) {
  const at::NoGradGuard no_grad;
  at::Tensor sum = at::zeros({elements}, at::TensorOptions(type));
  for (auto part = all.rbegin(); part != all.rend(); ++part) {
    void* const from = const_cast<void*>(part->second.from);
    sum.add_(at::from_blob(from, {elements}, at::TensorOptions(type)));
  }
  return sum;
}

void Sum(const Signature& call, const AllBuffers& all) {
  std::memcpy(all.at(call.root).to, SumOf(all, call.count, call.type).data_ptr(), call.bytes());
}

void SumAndScatter(const Signature& call, const AllBuffers& all) {
  const at::Tensor sum = SumOf(all, call.count * static_cast<int64_t>(all.size()), call.type);
  const char* next = static_cast<const char*>(sum.data_ptr());
  for (const auto& [rank, buffers] : all) {
    std::memcpy(buffers.to, next, call.bytes());
    next += call.bytes();
  }
}

enum Role { kSender, kReceiver };  // of a message

void Deliver(const Signature& call, const AllBuffers& both) {
  std::memcpy(both.at(kReceiver).to, both.at(kSender).from, call.bytes());
}

// Which calls of the handles of a group belong together: by how many of their kind came before.
class Clique {
 public:
  using Run = void (*)(const Signature& call, const AllBuffers& all);

  explicit Clique(int ranks) : ranks_(ranks) {}

  int ranks() const { return ranks_; }

  std::shared_ptr<ModelGpus::Collective> OfAll(int rank, const Signature& call, Run run) {
    absl::MutexLock lock(&mu_);
    std::set<int> all;
    for (int other = 0; other < ranks_; ++other) all.insert(other);
    return Find({-1, -1, calls_[{-1, -1, rank}]++}, call, all, run);
  }
  std::shared_ptr<ModelGpus::Collective> OfTwo(int from, int to, Role role, const Signature& call) {
    absl::MutexLock lock(&mu_);
    return Find({from, to, calls_[{from, to, role}]++}, call, {kSender, kReceiver}, Deliver);
  }

 private:
  using Key = std::tuple<int, int, int>;

  std::shared_ptr<ModelGpus::Collective> Find(const Key& key, const Signature& call,
                                              const std::set<int>& ranks, Run run)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    std::shared_ptr<ModelGpus::Collective>& found = found_[key];
    if (found == nullptr) {
      found = std::make_shared<ModelGpus::Collective>();
      found->name = call.ToString();
      found->ranks = ranks;
      found->run = [call, run](const AllBuffers& all) { run(call, all); };
    } else if (found->name != call.ToString()) {
      ModelGpus::Get().Fail(absl::StrCat("ranks call ", found->name, " and ", call.ToString()));
    }
    return found;
  }

  const int ranks_;
  absl::Mutex mu_;
  std::map<Key, int> calls_ ABSL_GUARDED_BY(mu_);  // of (from, to, role), or (-1, -1, rank)
  std::map<Key, std::shared_ptr<ModelGpus::Collective>> found_ ABSL_GUARDED_BY(mu_);
};

// What a test sets and asks while the rank works.
struct Faults {
  absl::Mutex mu;
  ModelNccl::Call last_call ABSL_GUARDED_BY(mu) = ModelNccl::Call::kNone;
  bool accepts ABSL_GUARDED_BY(mu) = true;
  NcclResult call ABSL_GUARDED_BY(mu) = NcclResult::kSuccess;
  NcclResult running ABSL_GUARDED_BY(mu) = NcclResult::kSuccess;
};

class Comm;

// What a thread has called since GroupStart.
struct Kernel {
  Comm* comm = nullptr;
  std::vector<std::string> names;
  std::vector<Access> accesses;
  std::vector<ModelGpus::Part> parts;
  std::optional<c10::Stream> stream;
};
thread_local Kernel group;

class Comm final : public NcclComm {
 public:
  Comm(int rank, std::shared_ptr<Clique> clique, std::shared_ptr<Faults> faults)
      : rank_(rank), clique_(std::move(clique)), faults_(std::move(faults)) {}

  ~Comm() override {
    for (const auto& kernel : kernels_) ModelGpus::Get().Abort(kernel);
  }

  NcclResult AllGather(const void* from, void* to, int64_t count, at::ScalarType type,
                       const c10::Stream& stream) override {
    const Signature call{"all-gather", count, type};
    return Add(call, {clique_->OfAll(rank_, call, Gather), rank_, {from, to}}, call.bytes(),
               call.bytes() * static_cast<size_t>(clique_->ranks()), stream);
  }
  NcclResult Broadcast(const void* from, void* to, int64_t count, at::ScalarType type, int root,
                       const c10::Stream& stream) override {
    const Signature call{"broadcast", count, type, root};
    return Add(call, {clique_->OfAll(rank_, call, Spread), rank_, {from, to}},
               root == rank_ ? call.bytes() : 0, call.bytes(), stream);
  }
  NcclResult Reduce(const void* from, void* to, int64_t count, at::ScalarType type, int root,
                    const c10::Stream& stream) override {
    const Signature call{"reduce", count, type, root};
    return Add(call, {clique_->OfAll(rank_, call, Sum), rank_, {from, to}}, call.bytes(),
               root == rank_ ? call.bytes() : 0, stream);
  }
  NcclResult ReduceScatter(const void* from, void* to, int64_t count, at::ScalarType type,
                           const c10::Stream& stream) override {
    const Signature call{"reduce-scatter", count, type};
    return Add(call, {clique_->OfAll(rank_, call, SumAndScatter), rank_, {from, to}},
               call.bytes() * static_cast<size_t>(clique_->ranks()), call.bytes(), stream);
  }
  NcclResult Send(const void* from, int64_t count, at::ScalarType type, int to,
                  const c10::Stream& stream) override {
    const Signature call{"message", count, type};
    return Add(call, {clique_->OfTwo(rank_, to, kSender, call), kSender, {from, nullptr}},
               call.bytes(), 0, stream);
  }
  NcclResult Recv(void* to, int64_t count, at::ScalarType type, int from,
                  const c10::Stream& stream) override {
    const Signature call{"message", count, type};
    return Add(call, {clique_->OfTwo(from, rank_, kReceiver, call), kReceiver, {nullptr, to}}, 0,
               call.bytes(), stream);
  }

  NcclResult AsyncError() override {
    absl::MutexLock lock(&faults_->mu);
    if (!accepted_ && (!faults_->accepts || --polls_ > 0)) return NcclResult::kInProgress;
    if (!accepted_) Accept();
    const bool runs = !kernels_.empty();
    return runs ? faults_->running : NcclResult::kSuccess;
  }

  // The group has ended.
  NcclResult Take(Kernel kernel) {
    for (int left = ModelGpus::Get().Random(kYields); left > 0; --left) std::this_thread::yield();
    polls_ = ModelGpus::Get().Random(kPolls);
    absl::MutexLock lock(&faults_->mu);
    if (faults_->call != NcclResult::kSuccess) return faults_->call;
    faults_->last_call = ModelNccl::Call::kCalled;
    called_ = std::move(kernel);
    accepted_ = false;
    if (polls_ > 0 || !faults_->accepts) return NcclResult::kInProgress;
    Accept();
    return NcclResult::kSuccess;
  }

 private:
  NcclResult Add(const Signature& call, ModelGpus::Part part, size_t reads, size_t writes,
                 const c10::Stream& stream) {
    group.comm = this;
    group.stream = stream;
    group.names.push_back(call.ToString());
    group.accesses.push_back({part.buffers.from, reads, /*writes=*/false});
    group.accesses.push_back({part.buffers.to, writes, /*writes=*/true});
    group.parts.push_back(std::move(part));
    return NcclResult::kSuccess;
  }

  // The kernel is on the stream from here on. The first time there is none: the handle is made.
  void Accept() ABSL_EXCLUSIVE_LOCKS_REQUIRED(faults_->mu) {
    accepted_ = true;
    if (!called_.stream.has_value()) return;
    const Kernel kernel = std::exchange(called_, {});
    kernels_.push_back(ModelGpus::Get().Enqueue(*kernel.stream,
                                                absl::StrJoin(kernel.names, " and "),
                                                kernel.accesses, nullptr, kernel.parts));
    faults_->last_call = ModelNccl::Call::kAccepted;
  }

  const int rank_;
  const std::shared_ptr<Clique> clique_;
  const std::shared_ptr<Faults> faults_;
  Kernel called_;
  bool accepted_ = false;
  int polls_ = 0;
  std::vector<std::shared_ptr<ModelGpus::Operation>> kernels_;
};

class Model final : public ModelNccl {
 public:
  const char* ErrorString(NcclResult result) const override {
    return result == kRemoteError ? "remote error" : "internal error";
  }

  NcclResult Connect(const std::vector<at::Device>& devices,
                     std::vector<std::unique_ptr<NcclComm>>* comms) override {
    const auto clique = std::make_shared<Clique>(static_cast<int>(devices.size()));
    for (size_t rank = 0; rank < devices.size(); ++rank) {
      comms->push_back(
          std::make_unique<Comm>(static_cast<int>(rank), clique, FaultsOf(static_cast<int>(rank))));
      if (connect_ != NcclResult::kSuccess) return connect_;
    }
    return NcclResult::kInProgress;
  }

  NcclResult GroupStart() override {
    group = {};
    return NcclResult::kSuccess;
  }
  NcclResult GroupEnd() override {
    const Kernel kernel = std::exchange(group, {});
    return kernel.comm == nullptr ? NcclResult::kSuccess : kernel.comm->Take(kernel);
  }

  void NeverAccept(int rank) override {
    const auto faults = FaultsOf(rank);
    absl::MutexLock lock(&faults->mu);
    faults->accepts = false;
  }
  void Refuse(int rank, NcclResult error) override {
    const auto faults = FaultsOf(rank);
    absl::MutexLock lock(&faults->mu);
    faults->call = error;
  }
  void FailRunning(int rank, NcclResult error) override {
    const auto faults = FaultsOf(rank);
    absl::MutexLock lock(&faults->mu);
    faults->running = error;
  }
  void RefuseConnect(NcclResult error) override { connect_ = error; }
  Call last_call(int rank) override {
    const auto faults = FaultsOf(rank);
    absl::MutexLock lock(&faults->mu);
    return faults->last_call;
  }

 private:
  std::shared_ptr<Faults> FaultsOf(int rank) {
    absl::MutexLock lock(&mu_);
    std::shared_ptr<Faults>& faults = faults_[rank];
    if (faults == nullptr) faults = std::make_shared<Faults>();
    return faults;
  }

  absl::Mutex mu_;
  std::map<int, std::shared_ptr<Faults>> faults_ ABSL_GUARDED_BY(mu_);
  NcclResult connect_ = NcclResult::kSuccess;
};

}  // namespace

std::shared_ptr<ModelNccl> MakeModelNccl() { return std::make_shared<Model>(); }

}  // namespace distro::worker::testing
