// Writes the seeds of the fuzz targets into tests/fuzz/corpus, from samples of the unit tests:
//   build/asan/fuzz/make_fuzz_seeds "[seeds]"
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "common/random.hpp"
#include "ipc/segment/segment_layout.hpp"
#include "kernels/model/architecture.hpp"
#include "tests/support/gguf_builder.hpp"
#include "tests/support/seed_adapter.hpp"
#include "tests/support/seed_model.hpp"
#include "tests/support/temporary_directory.hpp"
#include "tests/support/test_paths.hpp"
#include "tests/unit/ipc/control/message_samples.hpp"
#include "tests/unit/worker/text/tokenizer/byte_vocabulary.hpp"
#include "tools/make_model/write_model.hpp"
#include "worker/kv/record_layout.hpp"
#include "worker/kv/sequence_record.hpp"

using namespace leasehold;
using namespace leasehold::testing;

namespace {

void write_seed(const std::string& target, const std::string& name, std::string_view bytes) {
  const std::string directory = source_dir() + "/tests/fuzz/corpus/" + target;
  std::filesystem::create_directories(directory);
  std::ofstream file(directory + "/" + name, std::ios::binary);
  file << bytes;
  REQUIRE(file.good());
}

template <class T>
std::string image(const T& value) {
  return {reinterpret_cast<const char*>(&value), sizeof(value)};
}

void write_lines() {
  const auto& samples = message_samples();
  for (std::size_t i = 0; i < samples.size(); ++i) {
    write_seed("line_fuzz", samples[i].name, line_seed(i));
  }
  write_seed("line_fuzz", "descriptor",
             R"( {"jsonrpc":"2.0","method":"m","fds":1})"
             "\n\x02");
  write_seed("line_fuzz", "two-deliveries", " {\"jsonrpc\":\x01\"2.0\",\"result\":{}}\n\x01");
  write_seed("line_fuzz", "error",
             R"( {"jsonrpc":"2.0","id":"a","error":{"code":-32000,"message":"no",)"
             R"("data":{"code":"LeaseRevoked","retryable":false}}})"
             "\n");
}

void write_gateway() {
  write_seed("gateway_fuzz", "stream",
             "\x02\x06: b\n\ndata: a\n: t 0 0 7\n\n: t 1 0 8\n\ndata: [DONE]\n\n: e\n\n");
  write_seed("gateway_fuzz", "document",
             "\x01\x10: t 0 0 7\n\nevent: answer\ndata: {\"a\":1}\n\n: e\n\n");
  write_seed("gateway_fuzz", "error",
             std::string_view("\x00\x03"
                              "data: a\n: t 0 0 7\n\ndata: {\"error\":1}\n\n: x Draining 1500\n\n",
                              59));
  constexpr std::string_view kRead("\0 ", 2);  // the form does not matter
  write_seed("gateway_fuzz", "report",
             std::string(kRead) +
                 R"({"host":"a","models":[{"id":"m","identity":"i"}],"ready":false,)"
                 R"("code":"Draining","running":1,"waiting":2})");
  write_seed("gateway_fuzz", "body",
             std::string(kRead) +
                 R"({ "model" : "m\"", "stream":true, "n":2, "messages":[{"content":"a } b"}],)"
                 R"( "prompt":["a","b"]})");
}

void write_models() {
  write_seed("gguf_fuzz", "tiny-llama", tiny_llama().bytes());
  GgufBuilder tokenizer;
  add_tokenizer(tokenizer);
  write_seed("gguf_fuzz", "tokenizer", tokenizer.bytes());
  const auto byte_level =
      byte_vocabulary({{"c", "a"}, {" ", "a"}, {"a", "b"}}, {{"<e>", 3}}, "qwen2");
  write_seed("gguf_fuzz", "byte-level", byte_level.bytes());
  write_seed("gguf_fuzz", "empty", GgufBuilder{}.bytes());
}

std::string bytes_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream bytes;
  bytes << file.rdbuf();
  return bytes.str();
}

void write_adapters() {
  const TemporaryDirectory folder = TemporaryDirectory::create("seeds").value();
  for (const AdapterSeed& seed : kAdapterSeeds) {
    const std::string path = folder.file(seed.name);
    REQUIRE(make_model::write_adapter(seed_adapter(seed.type, seed.form), path));
    write_seed("adapter_fuzz", seed.name, adapter_seed_bytes(seed.form, path, bytes_of));
  }
}

/// A file of each architecture, and one in three parts.
void write_architectures() {
  const TemporaryDirectory folder = TemporaryDirectory::create("seeds").value();
  const std::string path = folder.file("m.gguf");
  for (const Architecture& row : architectures()) {
    REQUIRE(make_model::write_model(seed_request(row), path, [](auto, auto) {}));
    write_seed("gguf_fuzz", std::string(row.name), bytes_of(path));
  }
  make_model::ModelRequest request = seed_request(architectures().front());
  request.parts = 3;
  REQUIRE(make_model::write_model(request, path, [](auto, auto) {}));
  std::string sizes;
  std::string files;
  for (std::uint32_t part = 0; part < request.parts; ++part) {
    const std::string bytes = bytes_of(make_model::part_path(path, part, request.parts));
    if (part + 1 < request.parts) sizes += image(static_cast<std::uint16_t>(bytes.size()));
    files += bytes;
  }
  write_seed("gguf_split_fuzz", "model",
             image(std::uint8_t{2}) + image(std::uint8_t{1}) + sizes + files);
}

void write_split_models() {
  const auto part = [](std::uint32_t number) {
    return GgufBuilder{}.set("split.no", number).set("split.count", 2u);
  };
  const std::string first = part(0).set("split.tensors.count", 2u).vector("a", {1, 2}).bytes();
  const std::string second = part(1).vector("b", {3}).bytes();
  for (const std::uint8_t opened : {0, 1})
    write_seed("gguf_split_fuzz", opened == 0 ? "first" : "second",
               image(std::uint8_t{1}) + image(opened) +
                   image(static_cast<std::uint16_t>(first.size())) + first + second);
}

void write_segments() {
  constexpr std::uint32_t kSlots = 2;
  std::string table(table_size_bytes(kSlots), '\0');
  auto& header = *reinterpret_cast<TableHeader*>(table.data());
  header.magic = kTableMagic;
  header.size_bytes = table.size();
  header.slot_count = kSlots;
  header.worker_count = kMaxWorkers;
  header.abi_version.store(kSegmentAbiVersion);
  const std::string read_only_table = image(std::uint8_t{0}) + image(std::uint64_t{1});
  write_seed("attach_fuzz", "table", read_only_table + table);
  std::string segment(worker_segment_size_bytes(), '\0');
  auto& segment_header = *reinterpret_cast<WorkerSegmentHeader*>(segment.data());
  segment_header.magic = kWorkerSegmentMagic;
  segment_header.size_bytes = segment.size();
  segment_header.abi_version.store(kSegmentAbiVersion);
  write_seed("attach_fuzz", "worker_segment",
             image(std::uint8_t{0x10}) + image(std::uint64_t{0}) + segment);
}

void write_record() {
  constexpr RecordShape kShape{.max_context = 64, .n_groups = 2};  // as in record_fuzz.cpp
  RecordHeader header{.magic = kRecordMagic,
                      .version = kRecordVersion,
                      .max_context = kShape.max_context,
                      .request = "acme/r-1",
                      .n_groups = kShape.n_groups,
                      .state_blocks = 1,
                      .prompt_tokens = 3,
                      .max_emitted_tokens = 9,
                      .top_p = 0.5f,
                      .typical_p = 1.0f,
                      .repetition_penalty = 1.0f,
                      .top_logprobs = kNoLogprobs};
  const std::vector<std::byte> lists =
      pack_sampling_lists({.logit_bias = {{3, 1.0f}},
                           .stop_tokens = {4},
                           .stop = {"END"},
                           .grammar = {GrammarKind::Gbnf, "root ::= \"x\""}});
  header.lists_bytes = static_cast<std::uint32_t>(lists.size());
  const RecordSlot slot{.committed = 4, .tokens = 5, .blocks = 1, .state_copy = 2, .number = 2};
  const RecordSlot older{.committed = 3, .tokens = 4, .blocks = 1, .state_copy = 1, .number = 1};
  std::string record(record_size_bytes(kShape), '\0');
  record.replace(0, sizeof(header), image(header));
  record.replace(kSlotsOffset, sizeof(slot), image(slot));
  record.replace(kSlotsOffset + kCacheLineBytes, sizeof(older), image(older));
  record.append(reinterpret_cast<const char*>(lists.data()), lists.size());
  record += image(std::uint64_t{1} << kBlockIndexBits) + image(std::uint64_t{2});
  // The first byte makes the target add valid checksums.
  write_seed("record_fuzz", "two-commits", image(std::uint8_t{1}) + record);
}

void write_chats() {
  const std::string folder = source_dir() + "/tests/unit/worker/text/chat/templates/";
  for (const std::string name : {"llama-3.1", "mistral-v0.3", "qwen-3", "tinyllama"}) {
    std::ifstream source(folder + name + ".jinja"), tests(folder + name + ".json");
    std::ostringstream text;
    text << source.rdbuf() << '\0' << nlohmann::ordered_json::parse(tests).back()["messages"];
    write_seed("chat_template_fuzz", name, text.str());
  }
}

}  // namespace

/// The first byte selects the notation and the length of the text. The bytes after the text are
/// matched against the grammar.
void write_grammars() {
  const auto seed = [](const std::string& name, char kind, const std::string& text) {
    write_seed("grammar_fuzz", name, image(kind) + text);
  };
  seed("gbnf", 0,
       "root ::= item (\",\" item){0,3} # all\nitem ::= [a-c^\\x41é]+ | \"x\\n\" | (\".\"?)*");
  seed("recursion", 0, "root ::= e\ne ::= t (\"+\" e)?\nt ::= [0-9]{1,3} | \"(\" e \")\"");
  seed("schema", 1,
       R"s({"type":"object","properties":{"a":{"type":"integer","minimum":-3,"maximum":120},
    "b":{"anyOf":[{"$ref":"#"},{"type":["string","null"],"pattern":"^[a-z]{2}(x|\\d)*$"}]}},"required":["a"],
    "additionalProperties":{"type":"array","prefixItems":[{"const":1}],"items":{"format":"date-time"},
    "minItems":1,"maxItems":3}})s");
  seed("lenient", 3,
       R"({"type":"array","uniqueItems":true,"items":{"not":{"const":3},"format":"regex"}})");
  seed("class", 1, R"({"minLength":1,"pattern":"[)" + std::string(2000, 'z') + R"(]{0,60000}"})");
  seed("literals", 1, R"({"enum":["a",1,{"k":[null,true]}],"$defs":{"x":{"maxLength":4}}})");
}

/// Each byte is a choice of the writer of schemas.
void write_schemas() {
  for (std::uint64_t i = 0; i < 12; ++i) {
    SeededRandom random(i);
    std::string choices;
    for (std::uint64_t n = 20 + 40 * i; n > 0; --n) choices += static_cast<char>(random.below(256));
    write_seed("schema_fuzz", std::to_string(i), choices);
  }
}

/// The first byte selects the tokenizer and whether names of control tokens are tokens; the text
/// follows.
void write_texts() {
  const char* const texts[] = {"ab cab \u00e9 \u4f60\u597d 12345's <u>n<e>\n\n  x",
                               "\xff\xe2\x96 \u2581a"};
  for (int kind = 0; kind < 7; ++kind) {
    for (int i = 0; i < 2; ++i) {
      write_seed("tokenizer_fuzz", std::to_string(kind) + (i == 0 ? "-text" : "-bytes"),
                 static_cast<char>(2 * kind + i) + std::string(texts[i]));
    }
  }
}

TEST_CASE("fuzz: make_fuzz_seeds writes the seeds of all targets", "[.][seeds]") {
  write_lines();
  write_gateway();
  write_adapters();
  write_models();
  write_architectures();
  write_split_models();
  write_segments();
  write_record();
  write_chats();
  write_grammars();
  write_schemas();
  write_texts();
}
