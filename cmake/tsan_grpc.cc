// Tells the thread sanitizer in which order gRPC hands work over. Only in the tsan preset, linked into every program.
//
// Debian's gRPC is not instrumented, and it passes an operation from the thread that starts it to the thread that
// completes it by lock-free queues: without this file everything that a reactor's callback reads looks like a race with
// the thread that started the operation. The definitions below stand in front of those of libgrpc for the whole process.
// Each calls the library's own and states that a batch's start happens before its completion, and the end of a call before
// the destruction of a server (which waits for its calls; OnDone runs before the call is given back). Nothing else is
// ordered: two callbacks that gRPC may run at once, or a callback and the rest of the program, still race when they share data.
#include <dlfcn.h>
#include <grpc/grpc.h>
#include <link.h>
#include <sanitizer/tsan_interface.h>

#include <utility>
#include <vector>

// Interceptors (malloc, memcpy, sendmsg, ...) that a library not instrumented calls on its own memory: the order that
// this library makes with atomics is not seen, so each would be reported. The libraries named here lock with absl::Mutex,
// never with pthread's, so that no order is lost. Accesses by our own code are not touched by this.
extern "C" const char* __tsan_default_suppressions() {
  return "called_from_lib:libgrpc.so\n"
         "called_from_lib:libgrpc++.so\n"
         "called_from_lib:libgpr.so\n"
         "called_from_lib:libupb.so\n"
         "called_from_lib:libabsl_cord.so\n"
         "called_from_lib:libabsl_cord_internal.so\n"
         "called_from_lib:libabsl_graphcycles_internal.so\n"
         "called_from_lib:libabsl_random_internal_pool_urbg.so\n"
         "called_from_lib:libabsl_status.so\n"
         "called_from_lib:libabsl_strings.so\n"
         "called_from_lib:libabsl_time_zone.so\n";  // its own std::call_once and mutex, for its own table
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

// The tag of a callback completion queue is a functor, which begins with the address of code; that of another queue is
// an object of gRPC's C++ layer, which begins with the address of its virtual table.
bool IsFunctor(const void* tag) {
  static const auto* const segments = new auto(CodeSegments());
  const auto address = reinterpret_cast<uintptr_t>(static_cast<const Functor*>(tag)->functor_run);
  for (const auto& [begin, end] : *segments) {
    if (begin <= address && address < end) return true;
  }
  return false;
}

// Goes to the library in the place of a functor, and deletes itself when it has run.
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
  if (!IsFunctor(tag)) {
    __tsan_release(tag);
    return library(call, ops, count, tag, reserved);
  }
  auto* const ordered = new OrderedFunctor(static_cast<Functor*>(tag));
  __tsan_release(static_cast<Functor*>(ordered));
  const grpc_call_error error = library(call, ops, count, static_cast<Functor*>(ordered), reserved);
  if (error != GRPC_CALL_OK) delete ordered;
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
