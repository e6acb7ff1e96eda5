#include "server/service/raw_message.h"

#include "grpcpp/support/slice.h"

namespace distro::server {
namespace {

void Release(void* bytes) { delete static_cast<SharedBytes*>(bytes); }

}  // namespace

grpc::ByteBuffer ShareBytes(const SharedBytes& bytes) {
  auto* reference = new SharedBytes(bytes);  // the slice owns it
  const grpc::Slice slice(const_cast<char*>(bytes->data()), bytes->size(), &Release, reference);
  return grpc::ByteBuffer(&slice, 1);
}

}  // namespace distro::server
