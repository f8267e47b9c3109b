// The stage llama of leasehold-gpu-check beside programs that act as llama.cpp's.
#include <stdlib.h>

#include <catch2/catch.hpp>

#include "tests/process/tools/gpu_check_run.hpp"

using namespace leasehold;

namespace {

constexpr const char* kBenchRows = R"(cat <<'END'
| model           |     size |   params | backend | ngl | threads | fa |  test |             t/s |
| --------------- | -------: | -------: | ------- | --: | ------: | -: | ----: | --------------: |
| shape of a test | 3.80 GiB |   6.74 B | CUDA    |  99 |       4 |  1 | pp512 | 8000.00 ± 12.50 |
| shape of a test | 3.80 GiB |   6.74 B | CUDA    |  99 |       4 |  1 |  tg64 |   250.00 ± 0.25 |

build: fake (7)
END)";
constexpr const char* kBatchedRows = R"(cat <<'END'
|    PP |     TG |    B |   N_KV |   T_PP s | S_PP t/s |   T_TG s | S_TG t/s |      T s |    S t/s |
|-------|--------|------|--------|----------|----------|----------|----------|----------|----------|
|   512 |     64 |    1 |    576 |    0.064 |  8000.00 |    0.320 |   200.00 |    0.384 |  1500.00 |
|   512 |     64 |    8 |   4608 |    0.512 |  8000.00 |    0.512 |  1000.00 |    1.024 |  4500.00 |
|   512 |     64 |   32 |  18432 |    2.048 |  8000.00 |    1.024 |  2000.00 |    3.072 |  6000.00 |
END)";

/// Speeds of ours, with and without an early start, and with other keys.
constexpr const char* kSpeed = R"({"numbers": {
  "decode": [
    {"model": "tiny Q4_K_M", "arithmetic": "f16", "mode": "gated graph", "batch": 1, "tokens_per_s": 7},
    {"model": "tiny Q4_K_M", "arithmetic": "int8", "mode": "gated graph", "early": true, "batch": 1, "tokens_per_s": 300},
    {"model": "tiny Q4_K_M", "arithmetic": "int8", "mode": "gated graph", "early": true, "batch": 8, "tokens_per_s": 1100},
    {"model": "tiny Q4_K_M", "arithmetic": "int8", "mode": "gated graph", "early": true, "batch": 32, "tokens_per_s": 1500},
    {"model": "tiny Q4_K_M", "arithmetic": "int8", "mode": "gated graph", "early": false, "batch": 1, "tokens_per_s": 100}],
  "prefill": [{"model": "tiny Q4_K_M", "arithmetic": "int8", "rows": 512, "seconds": 0.032}]}})";

/// A folder of programs that write their arguments and then print the tables.
struct Peer {
  explicit Peer(const fs::path& place) : folder(place) {
    fs::create_directories(folder);
    write("llama-bench", kBenchRows);
    write("llama-batched-bench", kBatchedRows);
  }
  void write(const std::string& name, const std::string& body) const {
    Script::write_script(folder / name, "echo \"$@\" >> \"$ARGUMENTS\"\n" + body);
  }
  fs::path folder;
};

std::string replaced(std::string text, const std::string& old, const std::string& by) {
  const std::size_t at = text.find(old);
  REQUIRE(at != std::string::npos);
  return text.replace(at, old.size(), by);
}

/// Runs llama.py of the tree, which has its modules in another folder.
struct DriverOfTree {
  explicit DriverOfTree(const fs::path& folder)
      : script(folder, "python3",
               "shift 2\nexport PYTHONPATH=" + source_dir() +
                   "/tests/checks/peer\nexec /usr/bin/python3 -B " + source_dir() +
                   "/tests/checks/gpu_check/llama.py \"$@\"") {}
  Script script;
};

/// A run of the stage llama, and of a later one, with these programs.
struct LlamaRun {
  CardRun run;
  Peer peer{run.folders.root / "peer"};
  DriverOfTree driver{run.folders.root / "scripts"};
  Variable arguments{"ARGUMENTS", run.folders.root / "arguments"};

  int finish() {
    auto words = run.folders.arguments("llama,probe");
    words.insert(words.end(), {"--peer", peer.folder});
    return run.finish(words);
  }
};

/// The lines of a stage with this verdict, as "what: measured".
std::string lines_of(const Json& stage, const std::string& verdict) {
  std::string text;
  for (const Json& line : stage.at("lines"))
    if (line.at("verdict") == verdict)
      text +=
          line.at("what").get<std::string>() + ": " + line.at("measured").get<std::string>() + "\n";
  return text;
}

std::vector<std::string> lines_in(const fs::path& file) {
  std::ifstream stream(file);
  std::vector<std::string> lines;
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

}  // namespace

TEST_CASE("gpu-check: a second bundle runs llama.cpp's programs, and the report has the ratios") {
  const Folders folders;
  const Peer peer(folders.root / "peer");
  const std::string script = source_dir() + "/tools/gpu-check";
  const std::string bundle = folders.root / "bundle";
  const std::string second = folders.root / "second";
  const fs::path out = folders.root / "result";
  const Variable build("LEASEHOLD_GPU_CHECK_BUILD", fs::path(program_dir()).parent_path());
  const Variable arguments("ARGUMENTS", folders.root / "arguments");
  REQUIRE(std::system((script + " --bundle " + bundle + " --fake").c_str()) == 0);
  REQUIRE(std::system(
              (script + " --bundle " + second + " --peer " + peer.folder.string()).c_str()) == 0);
  fs::remove_all(peer.folder);
  fs::create_directories(out);
  std::ofstream(out / "speed.json") << kSpeed;

  const std::string from = bundle + "/gpu-check --from " + bundle + " --only llama --peer " +
                           second + " --out " + out.string();
  CHECK(std::system((from + " > " + out.string() + ".txt").c_str()) == 0);

  INFO(file_bytes(out / "table.txt"));
  const Json numbers = numbers_of(Json::parse(std::ifstream(out / "report.json")), "llama");
  CHECK(numbers.at("version") == "fake (7)");
  const Json rows = numbers.at("llama");
  REQUIRE(rows.size() == 10);  // two files
  constexpr double kRatios[] = {1.5, 1.1, 0.75, 2.0};
  for (std::size_t i = 0; i < std::size(kRatios); ++i) {
    INFO(rows.at(i).dump());
    CHECK(rows.at(i).at("model") == "tiny Q4_K_M");
    CHECK(rows.at(i).at("ratio") == Approx(kRatios[i]));
    CHECK_FALSE(rows.at(5 + i).contains("ratio"));  // of Q8_0, which speed.json lacks
  }
  CHECK_FALSE(rows.at(4).contains("ratio"));
  CHECK(rows.at(4).at("tokens_per_s") == 250);
  const std::string table = file_bytes(out / "table.txt");
  CHECK(table.find("fake (7)") != std::string::npos);
  CHECK(table.find("1000 tokens/s; ours / theirs 1.10") != std::string::npos);

  const auto given = lines_in(folders.root / "arguments");
  REQUIRE(given.size() == 4);
  const std::string common = "shape.gguf -t 4 -ngl 99 -fa 1 ";
  CHECK(given.at(0).ends_with(common + "-p 512 -n 64"));
  CHECK(given.at(1).ends_with(common + "-c 18432 -npp 512 -ntg 64 -npl 1,8,32"));
}

TEST_CASE("gpu-check: a second bundle needs both programs, and keeps links to a library") {
  const Folders folders;
  const Peer peer(folders.root / "peer");
  std::ofstream(peer.folder / "libfake.so.1.2") << "a library";
  fs::create_symlink("libfake.so.1.2", peer.folder / "libfake.so.1");
  const std::string second = folders.root / "second";
  const std::string pack =
      source_dir() + "/tools/gpu-check --bundle " + second + " --peer " + peer.folder.string();
  REQUIRE(std::system(pack.c_str()) == 0);
  const fs::path unpacked = folders.root / "unpacked";
  fs::create_directories(unpacked);
  REQUIRE(std::system(("tar -xzf " + second + "/peer.tar.gz -C " + unpacked.string()).c_str()) ==
          0);
  CHECK(fs::read_symlink(unpacked / "libfake.so.1") == "libfake.so.1.2");
  CHECK(file_bytes(unpacked / "libfake.so.1") == "a library");

  fs::remove(peer.folder / "llama-batched-bench");
  const std::string errors = folders.root / "errors";
  CHECK(std::system((pack + " 2> " + errors).c_str()) != 0);
  CHECK(file_bytes(errors).find("llama-batched-bench; build llama.cpp's") != std::string::npos);
  CHECK(fs::exists(second + "/peer.tar.gz"));
}

TEST_CASE("gpu-check: --from refuses a --peer that is not a folder before any stage runs") {
  const Folders folders;
  std::ofstream(folders.root / "content.tar.gz") << "not read";
  const std::string file = folders.root / "content.tar.gz";
  const std::string errors = folders.root / "errors";
  for (const std::string& peer : {file, folders.root.string() + "/missing"}) {
    const std::string from = source_dir() + "/tools/gpu-check --from " + folders.root.string() +
                             " --out " + folders.root.string() + "/out --peer " + peer;
    CHECK(std::system((from + " 2> " + errors).c_str()) != 0);
    CHECK(file_bytes(errors) == "gpu-check: --peer: there is no folder " + peer +
                                    "; name the second bundle, or a folder of llama-bench and "
                                    "llama-batched-bench\n");
    CHECK_FALSE(fs::exists(folders.root / "out"));
  }
}

TEST_CASE("gpu-check: --help describes the script and is not an error") {
  const Folders folders;
  const std::string output = folders.root / "output";
  CHECK(std::system((source_dir() + "/tools/gpu-check --help > " + output).c_str()) == 0);
  const std::string text = file_bytes(output);
  CHECK(text.starts_with("Checks correctness and speed on a machine with a GPU."));
  CHECK(text.ends_with("at most 60 MiB.\n"));
}

TEST_CASE("gpu-check: the tree of a bundle is what a sparse checkout has of it") {
  const Folders folders;
  const Peer peer(folders.root / "peer");
  const std::string clone = folders.root / "clone";
  const std::string sparse =
      "git clone -q --no-checkout " + source_dir() + " " + clone + " && cd " + clone +
      " && git sparse-checkout set --no-cone /tools/gpu-check /CMakePresets.json"
      " && git checkout -q HEAD && cp " +
      source_dir() + "/tools/gpu-check tools/";
  REQUIRE(std::system(sparse.c_str()) == 0);
  const std::string output = folders.root / "output";
  const std::string pack = clone + "/tools/gpu-check --bundle " +
                           (folders.root / "second").string() + " --peer " + peer.folder.string() +
                           " > " + output;
  CHECK(std::system(pack.c_str()) == 0);
  CHECK(file_bytes(output).find("with the tree 1 of 60 MiB") != std::string::npos);
}

TEST_CASE(
    "gpu-check: llama.cpp's programs that are missing or fail are unknown, and later stages run") {
  struct Fault {
    const char* program;
    std::string body;  ///< Empty: the program is missing.
    const char* message;
  };
  const std::string bench = kBenchRows;
  const std::string batched = kBatchedRows;
  const Fault faults[] = {
      {"llama-batched-bench", "", "llama-batched-bench; build llama.cpp's"},
      {"llama-bench", "echo 'no such card' >&2; exit 3",
       "llama-bench ended with 3; its log ends: no such card"},
      {"llama-bench", replaced(bench, "| CUDA ", "| CPU  "), "llama-bench ran on CPU"},
      {"llama-bench", "echo hello", "llama-bench printed no table: \"hello"},
      {"llama-batched-bench", replaced(batched, "|   32 |", "|   31 |"),
       "no result for a batch of 32"}};
  for (const Fault& fault : faults) {
    LlamaRun llama;
    llama.peer.write(fault.program, fault.body);
    if (fault.body.empty()) fs::remove(llama.peer.folder / fault.program);

    CHECK(llama.finish() == 0);

    const Json report = llama.run.folders.report();
    const std::string unknown = lines_of(report.at("stages").at(0), "unknown");
    INFO(fault.message << " in " << unknown);
    CHECK(unknown.find("llama.cpp, tiny Q4_K_M: exit code ") == 0);
    CHECK(unknown.find(fault.message) != std::string::npos);
    CHECK(report.at("stages").at(1).at("stage") == "probe");
    CHECK(report.at("stages").at(1).at("state") == "ended");
  }
}

TEST_CASE("gpu-check: llama.cpp's programs that do not end are cut off with their stage") {
  LlamaRun llama;
  llama.peer.write("llama-bench", "exec tail -f /dev/null");
  auto words = llama.run.folders.arguments("llama");
  *std::ranges::find(words, "30") = "0.1";  // minutes
  words.insert(words.end(), {"--peer", llama.peer.folder});

  CHECK(llama.run.finish(words) == 0);

  const Json stage = llama.run.folders.report().at("stages").at(0);
  CHECK(stage.at("state") == "cut off");
  CHECK(lines_of(stage, "unknown").find("the rest of the stage: not done after its 6 s") == 0);
}

TEST_CASE("gpu-check: the stage llama without programs says that --peer names their folder") {
  CardRun run;
  CHECK(run.finish("llama") == 0);
  CHECK(run.output.find("name their folder with --peer") != std::string::npos);
}
