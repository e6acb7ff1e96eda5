// The C library's calls on names and folders, replaced in the process of a test: a file system that
// cannot do something, and what a program did in which order. Not thread-safe; one at a time.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

namespace distro::testing {

class FileSystemCalls {
 public:
  FileSystemCalls();
  ~FileSystemCalls();
  FileSystemCalls(const FileSystemCalls&) = delete;
  FileSystemCalls& operator=(const FileSystemCalls&) = delete;

  // Lets every call of this name fail from now on: "link", "renameat2", "flock", "fsync",
  // "fsync_folder", "mkdir", "rename".
  void Fail(const std::string& call, int error_number) { faults_[call] = error_number; }
  // Called before each call, with "CALL PATH", the path without "//"; of a rename or
  // link the new name.
  void SetHook(std::function<void(const std::string& call)> hook) { hook_ = std::move(hook); }
  // All of them so far.
  const std::vector<std::string>& calls() const { return calls_; }

  // Of the replaced functions: the errno, or 0.
  int Meet(const std::string& call, const std::string& path);

 private:
  std::map<std::string, int> faults_;
  std::function<void(const std::string& call)> hook_;
  std::vector<std::string> calls_;
};

}  // namespace distro::testing
