// Tells the thread sanitizer in which order gRPC hands work over. Linked into every program of the
// tsan preset.
//
// Debian's gRPC is not instrumented, and it passes an operation from the thread that starts it to
// the thread that completes it by lock-free queues. Without this file everything that a reactor's
// callback reads would be reported as a race with the thread that started the operation. The
// definitions below replace those of libgrpc in the whole process. Each calls the library's own and
// announces one of three orders. A batch's start happens before its completion. The accepting
// thread prepares a call's memory before the call is handled. A call ends before the destruction of
// its server, which waits for its calls; OnDone runs before the call is returned. Nothing else is
// ordered: two callbacks that gRPC may run at once, or a callback and the rest of the program,
// still race when they share data.
#include <dlfcn.h>
#include <grpc/grpc.h>
#include <link.h>
#include <sanitizer/tsan_interface.h>

#include <functional>
#include <utility>
#include <vector>

// As in gRPC 1.51, which does not install this header. The functions do not use the server.
namespace grpc_core {
class Server {
 public:
  struct BatchCallAllocation {
    void* tag;
    grpc_call** call;
    grpc_metadata_array* initial_metadata;
    grpc_call_details* details;
  };
  struct RegisteredCallAllocation {
    void* tag;
    grpc_call** call;
    grpc_metadata_array* initial_metadata;
    gpr_timespec* deadline;
    grpc_byte_buffer** optional_payload;
  };
  void SetBatchMethodAllocator(grpc_completion_queue* queue,
                               std::function<BatchCallAllocation()> allocator);
  void SetRegisteredMethodAllocator(grpc_completion_queue* queue, void* method,
                                    std::function<RegisteredCallAllocation()> allocator);
};
}  // namespace grpc_core

// Interceptors (malloc, memcpy, sendmsg, ...) that an uninstrumented library calls on its own
// memory. The sanitizer does not see the order that the library establishes with atomics, so it
// would report each of them. The libraries named here lock with absl::Mutex, never with pthread's,
// so that no order is lost. OpenSSL's own locks guard its shared data, not the connections that
// gRPC hands from thread to thread. Accesses by our own code are still checked.
extern "C" const char* __tsan_default_suppressions() {
  return "called_from_lib:libgrpc.so\n"
         "called_from_lib:libgrpc++.so\n"
         "called_from_lib:libgpr.so\n"
         "called_from_lib:libupb.so\n"
         "called_from_lib:libssl.so\n"
         "called_from_lib:libcrypto.so\n"
         "called_from_lib:libabsl_cord.so\n"
         "called_from_lib:libabsl_cord_internal.so\n"
         "called_from_lib:libabsl_graphcycles_internal.so\n"
         "called_from_lib:libabsl_random_internal_pool_urbg.so\n"
         "called_from_lib:libabsl_status.so\n"
         "called_from_lib:libabsl_strings.so\n"
         "called_from_lib:libabsl_time.so\n"
         // Uses std::call_once and a mutex of its own, for its own table.
         "called_from_lib:libabsl_time_zone.so\n"
         // Inspects sockets that gRPC owns and may close meanwhile, by number, checked by the
         // kernel's cookie.
         "race:^distro::server::Acceptor::Watch\n"
         // LibTorch: oneDNN searches its own cache of kernels with memcmp.
         "race:^dnnl::impl::*::operator==\n";
}

namespace {

using Functor = grpc_completion_queue_functor;

std::vector<std::pair<uintptr_t, uintptr_t>> CodeSegments() {
  std::vector<std::pair<uintptr_t, uintptr_t>> segments;
  auto add = [](dl_phdr_info* info, size_t, void* data) {
    for (int i = 0; i < info->dlpi_phnum; ++i) {
      const ElfW(Phdr)& header = info->dlpi_phdr[i];
      if (header.p_type != PT_LOAD || (header.p_flags & PF_X) == 0) continue;
      const uintptr_t begin = info->dlpi_addr + header.p_vaddr;
      static_cast<decltype(segments)*>(data)->emplace_back(begin, begin + header.p_memsz);
    }
    return 0;
  };
  dl_iterate_phdr(add, &segments);
  return segments;
}

// The tag of a callback completion queue is a functor, which begins with the address of code; that
// of another queue is an object of gRPC's C++ layer, which begins with the address of its virtual
// table.
bool IsFunctor(const void* tag) {
  static const auto* const segments = new auto(CodeSegments());
  const auto address = reinterpret_cast<uintptr_t>(static_cast<const Functor*>(tag)->functor_run);
  for (const auto& [begin, end] : *segments) {
    if (begin <= address && address < end) return true;
  }
  return false;
}

// Passed to the library instead of a functor; deletes itself after it has run.
struct OrderedFunctor : Functor {
  explicit OrderedFunctor(Functor* functor) : Functor{}, original(functor) {
    functor_run = [](Functor* self, int ok) {
      __tsan_acquire(self);
      Functor* const wrapped = static_cast<OrderedFunctor*>(self)->original;
      delete static_cast<OrderedFunctor*>(self);
      wrapped->functor_run(wrapped, ok);
    };
    inlineable = functor->inlineable;
  }
  Functor* const original;
};

// Returns the tag to pass to the library instead of `tag`. Its completion is ordered after
// everything that this thread has done so far.
void* Ordered(void* tag) {
  if (!IsFunctor(tag)) {
    __tsan_release(tag);
    return tag;
  }
  Functor* const ordered = new OrderedFunctor(static_cast<Functor*>(tag));
  __tsan_release(ordered);
  return ordered;
}

// The same for the tags of `allocator`, which prepares the memory of one call.
template <typename Allocation>
std::function<Allocation()> Ordered(std::function<Allocation()> allocator) {
  return [allocator = std::move(allocator)] {
    Allocation allocation = allocator();
    allocation.tag = Ordered(allocation.tag);
    return allocation;
  };
}

char ended_calls;  // its address stands for the order

template <typename Function>
Function* Library(const char* name, Function*) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

}  // namespace

extern "C" {

grpc_call_error grpc_call_start_batch(grpc_call* call, const grpc_op* ops, size_t count, void* tag,
                                      void* reserved) {
  static auto* const library = Library("grpc_call_start_batch", &grpc_call_start_batch);
  void* const ordered = Ordered(tag);
  const grpc_call_error error = library(call, ops, count, ordered, reserved);
  if (error != GRPC_CALL_OK && ordered != tag) {
    delete static_cast<OrderedFunctor*>(static_cast<Functor*>(ordered));
  }
  return error;
}

grpc_event grpc_completion_queue_next(grpc_completion_queue* queue, gpr_timespec deadline,
                                      void* reserved) {
  static auto* const library = Library("grpc_completion_queue_next", &grpc_completion_queue_next);
  const grpc_event event = library(queue, deadline, reserved);
  if (event.type == GRPC_OP_COMPLETE) __tsan_acquire(event.tag);
  return event;
}

grpc_event grpc_completion_queue_pluck(grpc_completion_queue* queue, void* tag,
                                       gpr_timespec deadline, void* reserved) {
  static auto* const library = Library("grpc_completion_queue_pluck", &grpc_completion_queue_pluck);
  const grpc_event event = library(queue, tag, deadline, reserved);
  if (event.type == GRPC_OP_COMPLETE) __tsan_acquire(event.tag);
  return event;
}

void grpc_call_unref(grpc_call* call) {
  static auto* const library = Library("grpc_call_unref", &grpc_call_unref);
  __tsan_release(&ended_calls);
  library(call);
}

void grpc_server_destroy(grpc_server* server) {
  static auto* const library = Library("grpc_server_destroy", &grpc_server_destroy);
  library(server);
  __tsan_acquire(&ended_calls);
}

}  // extern "C"

namespace grpc_core {

void Server::SetBatchMethodAllocator(grpc_completion_queue* queue,
                                     std::function<BatchCallAllocation()> allocator) {
  using Set = void(Server*, grpc_completion_queue*, std::function<BatchCallAllocation()>);
  static auto* const library = Library(
      "_ZN9grpc_core6Server23SetBatchMethodAllocatorEP21grpc_completion_queueSt8functionI"
      "FNS0_19BatchCallAllocationEvEE",
      static_cast<Set*>(nullptr));
  library(this, queue, Ordered(std::move(allocator)));
}

void Server::SetRegisteredMethodAllocator(grpc_completion_queue* queue, void* method,
                                          std::function<RegisteredCallAllocation()> allocator) {
  using Set =
      void(Server*, grpc_completion_queue*, void*, std::function<RegisteredCallAllocation()>);
  static auto* const library = Library(
      "_ZN9grpc_core6Server28SetRegisteredMethodAllocatorEP21grpc_completion_queuePvSt8"
      "functionIFNS0_24RegisteredCallAllocationEvEE",
      static_cast<Set*>(nullptr));
  library(this, queue, method, Ordered(std::move(allocator)));
}

}  // namespace grpc_core
