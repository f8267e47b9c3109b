// Each rule must find planted violations and accept similar code that is allowed.
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <string>

#include "tests/support/temporary_directory.hpp"
#include "tests/tidy/coroutine_rules.hpp"
#include "tests/tidy/kernel_rules.hpp"
#include "tests/tidy/rules.hpp"

using namespace leasehold::tidy;
using leasehold::TemporaryDirectory;

namespace {

namespace fs = std::filesystem;
using Rule = Findings (*)(const Sources&);

bool finds(Rule rule, const std::string& path, const std::string& text) {
  return !rule({make_source(path, text)}).empty();
}

bool violates_layering(const char* path, const std::string& included) {
  return finds(layering_violations, path, "#include \"" + included + "\"\n");
}

/// A temporary source tree; the destructor removes it.
class ScratchTree {
 public:
  void write(const fs::path& path, const std::string& text) const {
    fs::create_directories((root() / path).parent_path());
    std::ofstream(root() / path) << text;
  }
  const fs::path& root() const { return directory_.path(); }

 private:
  TemporaryDirectory directory_ = TemporaryDirectory::create("tidy").value();
};

}  // namespace

TEST_CASE("planted: a violation in a file on disk is found where it stands") {
  const ScratchTree tree;
  tree.write("worker/engine/hasty.cpp", "// fine\nvoid f() {\n  cudaMemcpyAsync(a, b, n);\n}\n");
  tree.write("worker/engine/notes.txt", "cudaMemcpy\n");
  tree.write("build/generated.cpp", "cudaMemcpy\n");
  const Findings findings = device_calls_outside_launcher(read_sources(tree.root()));
  REQUIRE(findings.size() == 1);
  CHECK(findings[0].path == "worker/engine/hasty.cpp");
  CHECK(findings[0].line == 3);
  CHECK(findings[0].what == "  cudaMemcpyAsync(a, b, n);");
}

TEST_CASE("planted: device calls behind the door's back") {
  for (const char* call : {"cudaLaunchKernel(f);", "cudaMemcpy(a, b, n, k);", "cudaMemsetAsync(p);",
                           "cuLaunchKernel(f);", "cuMemcpyDtoH(a, b, n);", "cuMemsetD8(p);",
                           "cudaGraphLaunch(g, s);", "kernel<<<grid, block>>>(x);"}) {
    CAPTURE(call);
    CHECK(finds(device_calls_outside_launcher, "kernels/cuda/attention.cu", call));
    CHECK(finds(device_calls_outside_launcher, "worker/engine/engine.cpp", call));
    CHECK(finds(device_calls_outside_launcher, "tests/gpu/odd_test.cu", call));
    CHECK_FALSE(finds(device_calls_outside_launcher, "kernels/cuda/launcher.cu", call));
  }
  CHECK_FALSE(finds(device_calls_outside_launcher, "worker/a.cpp", "// never cudaMemcpy here"));
  CHECK_FALSE(finds(device_calls_outside_launcher, "worker/a.cpp", "/* no\n cudaMemcpy\n here */"));
  CHECK(finds(device_calls_outside_launcher, "worker/a.cpp", "/* now */ cudaMemcpy(a, b, n);"));
}

TEST_CASE("planted: handles opened without a permit") {
  CHECK(finds(handles_opened_outside_gate, "worker/kv/swap.cpp", "auto* p = h.address_;"));
  CHECK(finds(handles_opened_outside_gate, "kernels/cpu/fast.cpp", "return h->address_ + 1;"));
  CHECK_FALSE(finds(handles_opened_outside_gate, "worker/a.cpp", "x.address_of(path);"));
  CHECK_FALSE(
      finds(handles_opened_outside_gate, "ipc/segment/thread_gate.hpp", "return handle.address_;"));
}

TEST_CASE("planted: permits in places where no unit runs") {
  for (const char* line : {"void f(const LaunchPermit& permit);", "permit.open(handle);"}) {
    CHECK(finds(permits_outside_units, "worker/serve/tenant_server.cpp", line));
    CHECK(finds(permits_outside_units, "broker/decide/core.cpp", line));
    CHECK(finds(permits_outside_units, "tools/tenant/main.cpp", line));
    CHECK_FALSE(finds(permits_outside_units, "kernels/cpu/launcher.hpp", line));
    CHECK(finds(permits_outside_units, "worker/kv/sequence_record.cpp", line));
    CHECK(finds(permits_outside_units, "worker/engine/engine.cpp", line));
    CHECK_FALSE(finds(permits_outside_units, "worker/engine/stages/model_runner.cpp", line));
  }
}

TEST_CASE("planted: a plain mapping of what may be leased") {
  CHECK(finds(plain_mappings_outside_ipc, "worker/kv/swap.cpp", "Mapping::map(fd, n, access)"));
  CHECK(finds(plain_mappings_outside_ipc, "broker/server/peek.cpp", "::mmap(nullptr, n, 1, 1)"));
  CHECK(finds(plain_mappings_outside_ipc, "kernels/model/weights_layout.cpp",
              "mmap(nullptr, n, 1, 1)"));
  CHECK_FALSE(
      finds(plain_mappings_outside_ipc, "kernels/model/gguf/gguf.cpp", "mmap(nullptr, n, 1, 1)"));
  CHECK_FALSE(finds(plain_mappings_outside_ipc, "worker/kv/a.cpp", "LeasedMapping::map(fd, n, a)"));
  CHECK_FALSE(finds(plain_mappings_outside_ipc, "ipc/table/a.cpp", "Mapping::map(fd, n, access)"));
}

TEST_CASE("planted: includes that climb") {
  CHECK(violates_layering("common/a.hpp", "ipc/segment/lease_word.hpp"));
  CHECK(violates_layering("ipc/segment/gate_set.hpp", "ipc/region/mapping.hpp"));
  CHECK(violates_layering("ipc/control/transport/peer.hpp", "ipc/table/lease_table.hpp"));
  CHECK(violates_layering("ipc/table/a.cpp", "ipc/control/transport/peer.hpp"));
  CHECK(violates_layering("ipc/control/a.cpp", "ipc/http/http_listener.hpp"));
  CHECK(violates_layering("broker/server/a.cpp", "ipc/http/http_listener.hpp"));
  CHECK(violates_layering("kernels/cpu/a.cpp", "ipc/control/transport/peer.hpp"));
  CHECK(violates_layering("kernels/cpu/a.cpp", "ipc/region/mapping.hpp"));
  CHECK(violates_layering("kernels/a.hpp", "worker/engine/engine.hpp"));
  CHECK(violates_layering("kernels/a.hpp", "kernels/model/config.hpp"));
  CHECK(violates_layering("kernels/model/a.cpp", "worker/options.hpp"));
  CHECK(violates_layering("broker/a.cpp", "kernels/model/config.hpp"));
  CHECK(violates_layering("worker/a.cpp", "broker/decide/core.hpp"));
  CHECK(violates_layering("broker/a.cpp", "kernels/backend.hpp"));
  CHECK(violates_layering("broker/a.cpp", "worker/options.hpp"));
  CHECK(violates_layering("broker/server/a.cpp", "ipc/cuda/driver.hpp"));
  CHECK(violates_layering("broker/server/a.cpp", "broker/device_agent/agent.hpp"));
  CHECK(violates_layering("broker/device_agent/a.cpp", "broker/decide/core.hpp"));
  CHECK(violates_layering("tools/a.cpp", "tests/support/fake_table.hpp"));
  CHECK(violates_layering("broker/books/a.hpp", "broker/decide/core.hpp"));
  CHECK(violates_layering("broker/decide/a.cpp", "broker/journal/journal.hpp"));
  CHECK(violates_layering("broker/recovery/a.cpp", "broker/server/server.hpp"));
  CHECK(violates_layering("worker/kv/a.hpp", "worker/schedule/sequence.hpp"));
  CHECK(violates_layering("kernels/model/gguf/a.cpp", "kernels/model/config.hpp"));
  CHECK(violates_layering("worker/lease/a.cpp", "worker/options.hpp"));
  CHECK(violates_layering("ipc/client/a.cpp", "worker/options.hpp"));
  CHECK(violates_layering("broker/a.cpp", "ipc/client/session.hpp"));
  CHECK(violates_layering("worker/a.cpp", "tools/brokerctl/run.hpp"));
  CHECK(violates_layering("worker/http/a.cpp", "tools/client/text.hpp"));
  CHECK(violates_layering("tools/brokerctl/a.cpp", "worker/engine/engine.hpp"));
  CHECK(violates_layering("tools/brokerctl/a.cpp", "broker/books/extents.hpp"));
  CHECK(violates_layering("tools/tokenize/a.cpp", "worker/options.hpp"));
  CHECK(violates_layering("tools/a.cpp", "worker/text/tokenizer/tokenizer.hpp"));
  CHECK(violates_layering("worker/engine/a.cpp", "engine.hpp"));  // not from the root
}

TEST_CASE("planted: tools that link a room of worker or broker") {
  const auto links = [](const char* folder, const std::string& targets) {
    return finds(tools_linking_rooms, std::string(folder) + "/CMakeLists.txt",
                 "  LINKS leasehold::common " + targets + ")\n");
  };
  CHECK(links("tools/brokerctl", "leasehold::worker_engine"));
  CHECK(links("tools/brokerctl", "leasehold::broker_books"));
  CHECK(links("tools/brokerctl", "leasehold::worker_tokenizer"));
  CHECK(links("tools/tokenize", "leasehold::worker_tokenizer leasehold::worker_chat"));
  CHECK_FALSE(links("tools/tokenize", "leasehold::worker_tokenizer fmt::fmt"));
  CHECK_FALSE(links("tools/brokerctl", "leasehold::brokerctl_core leasehold::kernels_model"));
  CHECK_FALSE(links("tests/unit/broker", "leasehold::broker_server"));
}

TEST_CASE("planted: includes that go down are left alone") {
  CHECK_FALSE(violates_layering("kernels/a.hpp", "ipc/segment/thread_gate.hpp"));
  CHECK_FALSE(violates_layering("worker/a.cpp", "ipc/control/transport/peer.hpp"));
  CHECK_FALSE(violates_layering("worker/a.cpp", "kernels/backend.hpp"));
  CHECK_FALSE(violates_layering("worker/a.cpp", "kernels/model/config.hpp"));
  CHECK_FALSE(violates_layering("kernels/model/a.cpp", "kernels/op_args.hpp"));
  CHECK_FALSE(violates_layering("broker/a.cpp", "ipc/table/lease_table.hpp"));
  CHECK_FALSE(violates_layering("broker/device_agent/a.cpp", "ipc/cuda/driver.hpp"));
  CHECK_FALSE(violates_layering("broker/decide/a.cpp", "broker/books/state.hpp"));
  CHECK_FALSE(violates_layering("broker/main.cpp", "broker/server/server.hpp"));
  CHECK_FALSE(violates_layering("worker/serve/a.cpp", "worker/lease/broker_link.hpp"));
  CHECK_FALSE(violates_layering("tools/a.cpp", "kernels/model/config.hpp"));
  CHECK_FALSE(violates_layering("tools/tokenize/a.cpp", "worker/text/tokenizer/tokenizer.hpp"));
  CHECK_FALSE(violates_layering("worker/http/a.cpp", "ipc/client/session.hpp"));
  CHECK_FALSE(violates_layering("tests/a.cpp", "tests/support/fake_table.hpp"));
  CHECK_FALSE(violates_layering("tests/support/a.cpp", "tests/checks/demo/checks.hpp"));
}

TEST_CASE("planted: a file of 401 lines, and one of 400") {
  std::string text;
  for (int i = 0; i < 400; ++i) text += "\n";
  CHECK_FALSE(finds(files_too_long, "worker/a.cpp", text));
  CHECK(finds(files_too_long, "worker/a.cpp", text + "\n"));
}

TEST_CASE("planted: a room of 41 sources, and one of 40") {
  Sources sources{make_source("worker/room/below/a.cpp", "")};
  for (int i = 0; i < 40; ++i)
    sources.push_back(make_source("worker/room/" + std::to_string(i) + ".cpp", ""));
  CHECK(rooms_too_full(sources).empty());
  sources.push_back(make_source("worker/room/a.hpp", ""));
  CHECK(rooms_too_full(sources).size() == 1);
  for (SourceFile& file : sources) file.path = "tests/" + file.path;
  CHECK(rooms_too_full(sources).empty());
}

TEST_CASE("planted: marks of unfinished work, in code or comment") {
  for (const char* mark : {"TODO", "FIXME", "XXX", "HACK"})
    CHECK(finds(todo_markers, "worker/a.cpp", std::string("int x;  // ") + mark + ": later"));
  CHECK_FALSE(finds(todo_markers, "worker/a.cpp", "mkdtemp(\"a-XXXXXX\"); // HACKNEY TODOS"));
}

TEST_CASE("planted: a fault point nobody reaches") {
  const auto missing = [](const char* path, const char* call) {
    return unreached_fault_sites(
        {make_source("common/fault_point.hpp", "enum class FaultSite : int {\n  One,\n  Two,\n};"),
         make_source("broker/a.cpp", "fault_point(FaultSite::One);"), make_source(path, call)});
  };
  CHECK(missing("broker/b.cpp", "fault_point(FaultSite::Two);").empty());
  CHECK(missing("broker/b.cpp", "// fault_point(FaultSite::Two);").size() == 1);
  CHECK(missing("broker/b.cpp", "fault_point(FaultSite::TwoMore);").size() == 1);
  CHECK(missing("broker/b.cpp", "name(FaultSite::Two);").size() == 1);
  const Findings only_tested = missing("tests/b.cpp", "fault_point(FaultSite::Two);");
  REQUIRE(only_tested.size() == 1);
  CHECK(only_tested[0].line == 3);
}

TEST_CASE("planted: a launch site no backend or engine names") {
  const auto missing = [](const char* path, const char* use) {
    return unused_launch_sites({make_source("ipc/segment/launch_site.hpp",
                                            "enum class LaunchSite : int {\n  A, B,\n};"),
                                make_source("kernels/a.cpp", "run(LaunchSite::A);"),
                                make_source(path, use)})
        .size();
  };
  CHECK(missing("worker/engine/b.cpp", "run(LaunchSite::B)") == 0);
  CHECK(missing("worker/engine/b.cpp", "run(LaunchSite::Both)") == 1);
  CHECK(missing("broker/b.cpp", "name(LaunchSite::B)") == 1);
}

TEST_CASE("planted: a macro, however it is spaced") {
  for (const char* macro : {"#define LIMIT 3", "#  define LIMIT 3", "  #define TRYING(x) x"})
    CHECK(finds(macros_other_than_try, "worker/a.hpp", macro));
  CHECK_FALSE(finds(macros_other_than_try, "common/result.hpp", "#define TRY(expression) \\"));
  CHECK_FALSE(finds(macros_other_than_try, "worker/a.hpp", "// #define LIMIT 3"));
}

TEST_CASE("planted: a TRY that leaks members or memory") {
  for (const char* leak : {"  .size = TRY(read())};", "S s{.name = name(), .size = TRY(read())};",
                           "std::unique_ptr<S> s(new S(TRY(read())));"})
    CHECK(finds(leaking_tries, "worker/a.cpp", leak));
  CHECK_FALSE(finds(leaking_tries, "worker/a.cpp", "S s{.size = TRY(read()), .name = name()};"));
  CHECK_FALSE(finds(leaking_tries, "worker/a.cpp", "  s.size = TRY(read());"));
}

TEST_CASE("planted: a print that throws") {
  for (const char* print : {"fmt::print(stderr, \"{}\", x);", "  fmt::print(\"done\");",
                            "std::print(\"done\");", "std::println(\"done\");"}) {
    CHECK(finds(throwing_prints, "worker/program/main.cpp", print));
    CHECK_FALSE(finds(throwing_prints, "tests/unit/a_test.cpp", print));
  }
  CHECK_FALSE(finds(throwing_prints, "worker/a.cpp", "std::cerr << fmt::format(\"{}\", x);"));
}

TEST_CASE("planted: a co_await that the compiler mistranslates") {
  for (const char* wrong :
       {"while (is_open() && co_await step()) {}", "while (!co_await step() || is_open()) go();",
        "do go(); while (a &&\n  co_await step());", "co_await write(is_last ? end() : piece());",
        "return is_last ? co_await end() :\n co_await write(piece());",
        "f([&] { g(); }, co_await (a ? b() : c()));"})
    CHECK(finds(mistranslated_awaits, "worker/a.cpp", wrong));
  for (const char* right :
       {"while (is_open() && !is_done) co_await step();", "while (co_await step()) {}",
        "if (is_open() && !co_await step()) co_return;", "const int a = b ? c : d;\nco_await f(a);",
        "co_await f([&] { return a ? b : c; });",
        "if (const auto a = f(b ? c : d)) co_return co_await g(a);",
        "// while (a && co_await b) is mistranslated\n"})
    CHECK_FALSE(finds(mistranslated_awaits, "worker/a.cpp", right));
}

TEST_CASE("planted: a test that sleeps") {
  for (const char* sleep : {"std::this_thread::sleep_for(1ms);", "this_thread::sleep_until(t);",
                            "::usleep(10);", "sleep(1);", "nanosleep(&t, nullptr);"}) {
    CHECK(finds(sleeps_in_tests, "tests/unit/a_test.cpp", sleep));
    CHECK_FALSE(finds(sleeps_in_tests, "worker/a.cpp", sleep));
  }
}

TEST_CASE("planted: a protocol between blocks other than arrive") {
  for (const char* line :
       {"atomicAdd(counter, 1u);", "atomicExch(at, 0u);", "__threadfence();",
        "while (*static_cast<volatile std::uint32_t*>(ready) == 0) {}",
        "asm(\"red.release.gpu.global.add.u32 [%0], 1;\" ::\"l\"(at));",
        "while (load_acquire(&p.ready) == 0) {}", "store_to_host(p.done, 1);",
        "if (__ldcg(p.ready) != 0) return;", "cooperative_groups::this_grid().sync();"}) {
    CAPTURE(line);
    CHECK(finds(protocols_between_blocks, "kernels/cuda/ops/attention.cu", line));
    CHECK(finds(protocols_between_blocks, "kernels/cuda/device/int8/int8_tile.cuh", line));
    CHECK_FALSE(finds(protocols_between_blocks, "kernels/cuda/launcher.cpp", line));
  }
  CHECK(finds(protocols_between_blocks, "kernels/cuda/device/gate.cuh", "__threadfence();"));
  CHECK(finds(protocols_between_blocks, "kernels/cuda/ops/sampling.cu", "atomicAdd(&p.all, 1u);"));
  CHECK_FALSE(
      finds(protocols_between_blocks, "kernels/cuda/ops/sampling.cu", "atomicAdd(&n_kept, 1u);"));
  CHECK_FALSE(finds(protocols_between_blocks, "kernels/cuda/device/warp_collectives.cuh",
                    "total = atomicAdd(counter, own) + own;"));
  CHECK_FALSE(finds(protocols_between_blocks, "kernels/cuda/ops/attention.cu",
                    "if (!arrive(counter, n).is_last) return;  // atomic"));
}
