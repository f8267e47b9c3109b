// leasehold-gpu-check on the fake driver: its findings on a good card and on faulty ones.
#include <stdlib.h>

#include <algorithm>
#include <catch2/catch.hpp>

#include "common/errc.hpp"
#include "ipc/cuda/driver.hpp"
#include "tests/checks/gpu_check/step_times.hpp"
#include "tests/process/tools/gpu_check_run.hpp"

using namespace leasehold;

namespace {

constexpr const char* kQuestions[] = {"bits equal to the CPU's", "kills during kernels",
                                      "four clocks with graphs", "bandwidth per format",
                                      "decode, prefill, batch against the floor"};

/// The questions in their order, each with every number.
void check_answers(const Json& answers) {
  REQUIRE(answers.size() == std::size(kQuestions));
  for (std::size_t i = 0; i < answers.size(); ++i) {
    INFO(answers.at(i).dump(1));
    CHECK(answers.at(i).at("question") == kQuestions[i]);
    CHECK(answers.at(i).at("state") == "ended");
    CHECK(answers.at(i).at("missing").empty());
    CHECK(answers.at(i).at("verdict") == (i < 3 ? "right" : "measured"));
  }
  const Json bits = answers.at(0).at("numbers").at("bits");
  CHECK(bits.at("logits") == 6 * 512);  // tokens, vocabulary
  for (const char* way : {"single", "graphs", "prompt"}) CHECK(bits.at("differing").at(way) == 0);
  REQUIRE(bits.at("int8").size() == 1);
  CHECK(bits.at("int8").at(0).at("model") == "stories260K-q8_0");
  for (const char* way : {"single", "graphs", "prompt", "graphs_not_early"})
    CHECK(bits.at("int8").at(0).at("differing").at(way) == 0);
  CHECK(bits.at("q8_0_keys").at("model") == "kq-llama-q4_k_m");
  for (const char* way : {"single", "graphs", "prompt"})
    CHECK(bits.at("q8_0_keys").at("differing").at(way) == 0);
  const Json kills = answers.at(1).at("numbers").at("kills_in_kernel");
  CHECK(kills.at("in_kernel") == 2);
  CHECK(kills.at("words_after") == 0);
  const Json clocks = answers.at(2).at("numbers");
  CHECK(clocks.at("clocks").at("graphs") == "gated");
  CHECK(clocks.at("clocks").at("revocations") == 3);
  for (const char* clock : {"t_refuse_us", "t_quiet_us", "t_error_us", "t_reuse_us"})
    CHECK(clocks.at(clock).at("p99") > 0);
  CHECK(clocks.at("t_reuse_us").at("count") == 3);
  CHECK(clocks.at("revoke").size() == 4);
  CHECK(clocks.at("revoke").at(2).at("remapped") > 0);
  for (const Json& flips : clocks.at("revoke")) CHECK(flips.at("t_quiet_us").size() == 3);
  // Fifteen formats in f16 and thirteen in int8, two batches.
  CHECK(answers.at(3).at("numbers").at("matmul").size() == 56);
  for (const Json& one : answers.at(3).at("numbers").at("matmul")) CHECK(one.at("gb_per_s") > 0);
  const Json speed = answers.at(4).at("numbers");
  // Two batches: three ways in f16; of two formats two in int8, one in int8 with keys in q8_0.
  CHECK(speed.at("decode").size() == 18);
  CHECK(speed.at("decode").back().at("arithmetic") == "int8+q8_0");
  for (const Json& one : speed.at("decode")) CHECK(one.at("share_of_floor") > 0);
  for (const Json& one : speed.at("prefill")) CHECK(one.at("share_of_rate") > 0);
}

/// Every stage in its order, and what the stages write beside the answers.
void check_stages(const Json& report) {
  std::vector<std::string> stages;
  for (const Json& one : report.at("stages")) stages.push_back(one.at("stage"));
  CHECK(stages == std::vector<std::string>{"machine", "bits", "kills", "clocks", "bandwidth",
                                           "speed", "launches", "peers", "probe", "correctness",
                                           "gate", "swap", "memcheck", "racecheck"});
  CHECK(numbers_of(report, "machine").at("card").contains("driver"));
  CHECK(numbers_of(report, "kills").at("processes_share_memory") == true);
  const Json launches = numbers_of(report, "launches").at("launches").at(0);
  CHECK(launches.at("of_layer") == launches.at("times").size());
  // The values of this file have a format of their own, so they take one more launch.
  CHECK(launches.at("of_layer") == 6);
  CHECK(numbers_of(report, "launches").at("launches_not_early").at(0).at("of_layer") == 8);
  const Json fits = numbers_of(report, "speed").at("fit");
  CHECK(fits.size() == 4);  // two batches, early and not
  CHECK(launches.at("of_step") > 2 * launches.at("times").size());
  const Json probed = numbers_of(report, "probe");
  CHECK(probed.at("conditional_nodes") == true);
  CHECK(probed.at("programmatic_edges") == (LEASEHOLD_CUDA_EDGE_DATA ? 3 : 0));
  CHECK(probed.at("freed_after_pidfd_us").size() == 5);
  CHECK(probed.at("clear").size() == 2);
  CHECK(probed.at("clear").at(0).at("p50_us") > 0);
  const Json checked = numbers_of(report, "correctness");
  CHECK(checked.at("models").size() == 1);
  CHECK(checked.at("test_programs").size() == 3);
  for (const auto& [program, code] : checked.at("test_programs").items()) CHECK(code == 0);
  CHECK(numbers_of(report, "gate").at("demo").at("checks").size() > 5);
  const Json swapped = numbers_of(report, "swap").at("swap");
  for (const char* name : {"out_gb_per_s", "in_gb_per_s", "map_and_unmap_us"})
    CHECK(swapped.at(name) > 0);
}

/// The table ends with the questions in their order.
void check_order(const std::string& table) {
  std::size_t at = table.find("\nanswers\n");
  for (const char* question : kQuestions) {
    at = table.find(question, at);
    INFO(question);
    REQUIRE(at != std::string::npos);
  }
}

}  // namespace

TEST_CASE("gpu-check: without --bin-dir it is wrong usage, and writes nothing") {
  const Folders folders;
  ProgramRun run("leasehold-gpu-check", {"--out", folders.root / "report"});
  CHECK(run.finish([] {}, kGpuCheckTimeout) == 2);
  CHECK(run.errors().find("--bin-dir is required") != std::string::npos);
  CHECK_FALSE(fs::exists(folders.root / "report"));
}

TEST_CASE("gpu-check: an unknown stage is wrong usage") {
  ProgramRun check("leasehold-gpu-check", {"--only", "probe,frob"});
  CHECK(check.finish() == 2);
  CHECK(check.errors().find("no stage frob") != std::string::npos);
}

TEST_CASE("gpu-check: a bundle in one command answers every question in order on a good card") {
  const Folders folders;
  const std::string script = source_dir() + "/tools/gpu-check";
  const std::string bundle = folders.root / "bundle";
  const std::string out = folders.root / "result";
  const Variable build("LEASEHOLD_GPU_CHECK_BUILD", fs::path(program_dir()).parent_path());
  REQUIRE(std::system((script + " --bundle " + bundle + " --fake").c_str()) == 0);

  const std::string from = bundle + "/gpu-check --from " + bundle + " --minutes 30 --out " + out;
  CHECK(std::system((from + " > " + out + ".txt").c_str()) == 0);

  const fs::path unpacked = folders.root / "unpacked";
  fs::create_directories(unpacked);
  REQUIRE(std::system(("tar -xzf " + out + ".tar.gz -C " + unpacked.string()).c_str()) == 0);
  INFO(file_bytes(unpacked / "table.txt") << file_bytes(unpacked / "logs.txt"));
  const Json report = Json::parse(std::ifstream(unpacked / "report.json"));
  CHECK(report.at("all_right") == true);
  check_answers(report.at("answers"));
  check_stages(report);
  check_order(file_bytes(unpacked / "table.txt"));
}

TEST_CASE("gpu-check: a stage that is cut off is unknown, not wrong") {
  CardRun run;
  const Script hangs(run.folders.root / "scripts", "nvidia-smi", "exec tail -f /dev/null");
  auto arguments = run.folders.arguments("machine");
  *std::ranges::find(arguments, "30") = "0.1";  // minutes

  CHECK(run.finish(arguments) == 0);

  const Json report = run.folders.report();
  CHECK(report.at("all_right") == true);
  CHECK(report.at("stages").at(0).at("state") == "cut off");
  CHECK(report.at("stages").at(0).at("lines").back().at("verdict") == "unknown");
  CHECK(run.output.find("unknown  the rest of the stage") != std::string::npos);
}

TEST_CASE("gpu-check: clocks and power are recorded, and kernels are loaded as by a worker") {
  CardRun run;
  const Script answers(run.folders.root / "scripts", "nvidia-smi",
                       "echo \"1980, 2619, 412.50, 61, $CUDA_MODULE_LOADING\"");

  CHECK(run.finish("machine") == 0);

  const Json recorded = numbers_of(run.folders.report(), "machine").at("card_state").at(0);
  CHECK(recorded.at("sm_mhz") == "1980");
  CHECK(recorded.at("watt") == "412.50");
  CHECK(recorded.at("throttle") == "EAGER");  // the stage's environment
}

TEST_CASE("gpu-check: PyTorch's speeds are compared with those of the stage speed") {
  CardRun run;
  const fs::path out = run.folders.root / "report";
  fs::create_directories(out);
  std::ofstream(out / "speed.json") << R"({"numbers": {"decode": [
            {"model": "7b Q8_0", "arithmetic": "int8", "mode": "gated graph", "batch": 8,
             "tokens_per_s": 1600}]}})";
  const Script python(run.folders.root / "scripts", "python3",
                      "while [ \"$1\" != --out ]; do shift; done\n"
                      "echo '{\"torch\": \"9.9\", \"peers\": ["
                      "{\"kind\": \"int8\", \"rows\": 8, \"seconds\": 0.004, "
                      "\"bytes\": 8e9, \"flop\": 1e12}, "
                      "{\"kind\": \"bf16\", \"rows\": 8, \"seconds\": 0.004}, "
                      "{\"kind\": \"int4\", \"rows\": 1, \"missing\": \"no kernel\"}]}' > \"$2\"");

  CHECK(run.finish("peers") == 0);

  const Json numbers = numbers_of(run.folders.report(), "peers");
  CHECK(numbers.at("torch") == "9.9");
  CHECK(numbers.at("peers").at(0).at("ratio") == Approx(0.8));
  CHECK_FALSE(numbers.at("peers").at(1).contains("ratio"));
  CHECK(run.output.find("2000 tokens/s, 2.00 TB/s, 250 TFLOP/s; ours / theirs 0.80") !=
        std::string::npos);
  CHECK(run.output.find("no kernel") != std::string::npos);
}

TEST_CASE("gpu-check: without PyTorch the comparison is unknown, and says what is missing") {
  CardRun run;
  const Script python(
      run.folders.root / "scripts", "python3",
      "exec /usr/bin/python3 " + source_dir() + "/tests/checks/gpu_check/peers.py \"$2\" \"$3\"");
  const Variable no_modules("PYTHONPATH", run.folders.root / "modules");
  fs::create_directories(run.folders.root / "modules");
  std::ofstream(run.folders.root / "modules" / "torch.py") << "raise ImportError('none here')\n";
  CHECK(run.finish("peers") == 0);
  CHECK(run.output.find("exit code 3: PyTorch is missing (none here)") != std::string::npos);
}

TEST_CASE("gpu-check: two formats give the fixed time of a step and its rate") {
  constexpr auto kFit = gpu_check::fit_steps({.bytes = 4.27e9, .seconds = 3378e-6},
                                             {.bytes = 7.29e9, .seconds = 4049e-6});
  CHECK(kFit.bytes_per_s == Approx(4.50e12).epsilon(0.001));
  CHECK(kFit.fixed_seconds == Approx(2429e-6).epsilon(0.001));
}

TEST_CASE("gpu-check: the script packs report, table and logs as one archive of few files") {
  const Folders folders;
  const fs::path bundle = folders.root / "bundle";
  fs::create_directories(bundle);
  fs::create_directories(folders.root / "content" / "bin");
  Script::write_script(folders.root / "content" / "bin" / "leasehold-gpu-check",
                       "while [ \"$1\" != --out ]; do shift; done\n"
                       "mkdir -p \"$2/gate-demo\"; echo '{}' > \"$2/report.json\"\n"
                       "for i in 1 2 3 4 5 6 7 8 9; do echo \"log $i\" > \"$2/stage$i.log\"; done\n"
                       "echo deep > \"$2/gate-demo/worker.log\"; echo the table; exit 1");
  REQUIRE(std::system(("tar -czf " + (bundle / "content.tar.gz").string() + " -C " +
                       (folders.root / "content").string() + " .")
                          .c_str()) == 0);
  const std::string out = folders.root / "result";
  const std::string script = source_dir() + "/tools/gpu-check";
  const std::string listing = folders.root / "listing";
  const int status =
      std::system((script + " --from " + bundle.string() + " --out " + out + " > " + listing +
                   "; test $? = 1 && tar -xzf " + out + ".tar.gz -C " + bundle.string())
                      .c_str());
  REQUIRE(status == 0);  // the program's exit code survives
  CHECK(file_bytes(bundle / "table.txt") == "the table\n");
  const std::string text = file_bytes(bundle / "logs.txt");
  CHECK(text.contains("==> stage9.log <==\nlog 9\n"));
  CHECK(text.contains("==> gate-demo/worker.log <==\ndeep\n"));
  CHECK(fs::exists(bundle / "report.json"));
  CHECK(std::distance(fs::directory_iterator(bundle), fs::directory_iterator()) <= 8 + 1);
}

TEST_CASE("gpu-check: without shared card memory, threads replace processes") {
  CardRun run;
  const Variable forbidden("FAKE_CUDA_FAIL", "cuMemExportToShareableHandle");

  CHECK(run.finish("kills,clocks,gate") == 0);

  CHECK(run.output.find("[as threads of one process]") != std::string::npos);
}

TEST_CASE("gpu-check: without a card it exits with NoDevice and advice") {
  CardRun run;
  const Variable none("FAKE_CUDA_DEVICES", "0");

  CHECK(run.finish("machine,speed") == exit_code(Errc::NoDevice));

  CHECK(run.output.find("nvidia-smi") != std::string::npos);
  CHECK(run.folders.report().at("stages").size() == 1);
  CHECK(run.folders.report().at("all_right") == false);
}

TEST_CASE("gpu-check: a failed stage is in the report and the exit code, and later stages run") {
  CardRun run;
  const Variable full("FAKE_CUDA_MEMORY_MIB",
                      "4");  // less than the 16 MiB that the probe allocates

  CHECK(run.finish("probe,memcheck") == 1);

  const Json report = run.folders.report();
  CHECK(report.at("stages").at(0).at("state") == "failed");
  CHECK(report.at("stages").size() == 2);
  CHECK(run.output.find("WRONG") != std::string::npos);
}
