// Leaks that the address sanitizer does not report when a program ends. Linked into every program
// where it is on.

// Debian's c-ares 1.18 leaks about 10 bytes each time that gRPC resolves a host name.
extern "C" const char* __lsan_default_suppressions() { return "leak:libcares.so\n"; }
extern "C" const char* __lsan_default_options() { return "print_suppressions=0"; }
