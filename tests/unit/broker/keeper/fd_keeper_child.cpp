// A program under a service manager: prints the descriptors it was given, then runs its commands:
// `keep NAME` (a new file with NAME as content), `remove NAME`, `remove-all`, `ready`.
#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "broker/server/start/fd_keeper.hpp"
#include "common/machine/service_manager.hpp"

using namespace leasehold;

namespace {

void keep(FdKeeper& fd_store, const char* name) {
  const UniqueFd file(::memfd_create(name, MFD_CLOEXEC));
  if (::dprintf(file.get(), "%s", name) < 0 || !fd_store.keep(name, file)) std::exit(3);
}

void print_given(KeptDescriptors& given) {
  for (const std::string& name : given.names()) {
    const UniqueFd fd = given.take(name);
    char text[64] = {};
    if (::pread(fd.get(), text, sizeof(text) - 1, 0) < 0) std::exit(4);
    std::printf("%s=%s;", name.c_str(), text);
  }
  std::printf(std::getenv("LISTEN_FDS") == nullptr ? "taken\n" : "left\n");
}

}  // namespace

int main(int argc, char** argv) {
  auto given = KeptDescriptors::from_service_manager();
  if (!given) {
    std::printf("%s\n", given.error().detail.c_str());
    return exit_code(given.error().code);
  }
  print_given(*given);
  FdKeeper fd_store(given->stored_names());
  for (int i = 1; i < argc; ++i) {
    const std::string_view verb = argv[i];
    if (verb == "keep") keep(fd_store, argv[++i]);
    if (verb == "remove") fd_store.remove(argv[++i]);
    if (verb == "remove-all") fd_store.remove_all();
    if (verb == "ready") notify_service_manager("READY=1");
  }
  return 0;
}
