// Has one fault for each sanitizer: a read beyond an array, and a write that races with another
// thread's.
#include <memory>
#include <thread>

int main(int argc, char**) {
  const auto numbers = std::make_unique<int[]>(argc);
  int shared = 0;
  std::thread other([&] { shared = numbers[argc]; });
  shared = 1;
  other.join();
  return shared == 2 ? 1 : 0;
}
