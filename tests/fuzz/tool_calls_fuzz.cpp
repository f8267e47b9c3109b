// What a model says, in pieces whose sizes the input chooses. Checks that the pieces change
// nothing, that nothing is invented, and that the arguments of each call are an object.
#include <nlohmann/json.hpp>

#include "tests/fuzz/input.hpp"
#include "worker/text/chat/harmony.hpp"
#include "worker/text/chat/reasoning.hpp"
#include "worker/text/chat/text_marker.hpp"
#include "worker/text/chat/tool_calls.hpp"

using namespace leasehold;

namespace {

struct Said {
  std::string reasoning;
  ToolCallParser::Output said;
  bool operator==(const Said&) const = default;
};

class Reader {
 public:
  void push(std::string_view piece) {
    const auto split = reasoning_.push(piece);
    all_.reasoning += split.reasoning;
    add(calls_.push(split.text));
  }
  Said finish() {
    const auto rest = reasoning_.finish();
    all_.reasoning += rest.reasoning;
    add(calls_.push(rest.text));
    add(calls_.finish());
    return all_;
  }

 private:
  void add(const ToolCallParser::Output& more) {
    all_.said.text += more.text;
    all_.said.calls.insert(all_.said.calls.end(), more.calls.begin(), more.calls.end());
  }
  ReasoningParser reasoning_;
  ToolCallParser calls_;
  Said all_;
};

class HarmonyReader {
 public:
  void push(std::string_view piece) { add(parser_.push(piece)); }
  Said finish() {
    add(parser_.finish());
    return all_;
  }

 private:
  void add(const HarmonyParser::Output& more) {
    all_.reasoning += more.reasoning;
    all_.said.text += more.text;
    all_.said.calls.insert(all_.said.calls.end(), more.calls.begin(), more.calls.end());
  }
  HarmonyParser parser_;
  Said all_;
};

template <class Parser>
void check_pieces(std::string_view text, std::size_t stride) {
  Parser whole;
  whole.push(text);
  const Said said = whole.finish();
  fuzz::check(said.reasoning.size() + said.said.text.size() <= text.size());
  for (const ToolCall& call : said.said.calls)
    fuzz::check(!call.name.empty() &&
                nlohmann::json::parse(call.arguments, nullptr, false).is_object());
  if (text.size() > kMaxHeldBytes) return;  // how much whitespace is held depends on the pieces
  Parser pieces;
  for (std::size_t at = 0; at < text.size(); at += stride) pieces.push(text.substr(at, stride));
  fuzz::check(pieces.finish() == said);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::Input input{{data, size}};
  const std::size_t stride = 1 + input.byte() % 32;
  const auto rest = input.rest();
  const std::string_view text(reinterpret_cast<const char*>(rest.data()), rest.size());
  check_pieces<Reader>(text, stride);
  check_pieces<HarmonyReader>(text, stride);
  return 0;
}
