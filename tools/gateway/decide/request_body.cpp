#include "tools/gateway/decide/request_body.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <iterator>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "common/utf8.hpp"
#include "tools/gateway/decide/place.hpp"

namespace leasehold::gateway {
namespace {

/// Walks over JSON text that is known to be valid.
class JsonWalk {
 public:
  explicit JsonWalk(std::string_view text) : rest_(text) { skip_space(); }

  char front() const { return rest_.empty() ? '\0' : rest_.front(); }

  /// Passes one structural character and the space after it.
  void pass() {
    rest_.remove_prefix(1);
    skip_space();
  }

  /// Passes a whole value and returns its text.
  std::string_view pass_value() {
    const std::string_view from = rest_;
    int depth = 0;
    do {
      if (front() == '"') {
        pass_string();
      } else {
        depth += opens() - closes();
        pass_scalar_or_bracket();
      }
    } while (depth > 0);
    const std::string_view value = from.substr(0, from.size() - rest_.size());
    skip_space();
    return value;
  }

 private:
  int opens() const { return front() == '{' || front() == '[' ? 1 : 0; }
  int closes() const { return front() == '}' || front() == ']' ? 1 : 0; }

  void skip_space() {
    rest_.remove_prefix(std::min(rest_.find_first_not_of(" \t\r\n"), rest_.size()));
  }

  void pass_string() {
    std::size_t end = 1;
    while (rest_[end] != '"') end += rest_[end] == '\\' ? 2 : 1;
    rest_.remove_prefix(end + 1);
  }

  /// One bracket, comma, colon or space; or a number or word.
  void pass_scalar_or_bracket() {
    const std::size_t end = rest_.find_first_of("{}[],:\" \t\r\n");
    rest_.remove_prefix(end == 0 ? 1 : std::min(end, rest_.size()));
  }

  std::string_view rest_;
};

/// A text as JSON means it: two spellings of one name are the same member.
std::string decoded(std::string_view json_string) {
  if (!json_string.contains('\\'))
    return std::string(json_string.substr(1, json_string.size() - 2));
  return nlohmann::json::parse(json_string).get<std::string>();
}

/// The members that the gateway reads, as JSON text; of two with one name, the last.
struct Members {
  std::string_view model, stream, n, prompt, messages, input, system, instructions, any_arithmetic,
      resumable;
  bool has_emitted = false;
};

std::string_view* member_of(Members& members, std::string_view name) {
  constexpr std::pair<std::string_view, std::string_view Members::*> kAll[] = {
      {"model", &Members::model},
      {"stream", &Members::stream},
      {"n", &Members::n},
      {"prompt", &Members::prompt},
      {"messages", &Members::messages},
      {"input", &Members::input},
      {"system", &Members::system},
      {"instructions", &Members::instructions},
      {"any_arithmetic", &Members::any_arithmetic},
      {"resumable", &Members::resumable}};
  const auto* found = std::ranges::find(kAll, name, [](const auto& pair) { return pair.first; });
  return found == std::end(kAll) ? nullptr : &(members.*found->second);
}

Members members_of(std::string_view object) {
  Members members;
  JsonWalk walk(object);
  walk.pass();  // the brace
  while (walk.front() != '}') {
    const std::string name = decoded(walk.pass_value());
    walk.pass();  // the colon
    const std::string_view value = walk.pass_value();
    if (walk.front() == ',') walk.pass();
    if (name == "emitted") members.has_emitted = true;
    if (std::string_view* member = member_of(members, name)) *member = value;
  }
  return members;
}

/// The number of prompts in a completion: a list of numbers is one prompt of tokens.
std::size_t count_prompts(std::string_view prompt) {
  if (!prompt.starts_with('[')) return 1;
  JsonWalk walk(prompt);
  walk.pass();
  if (walk.front() != '"' && walk.front() != '[') return 1;
  std::size_t count = 0;
  while (walk.front() != ']') {
    walk.pass_value();
    if (walk.front() == ',') walk.pass();
    ++count;
  }
  return count;
}

std::uint32_t choices_of(const Members& members) {
  std::uint32_t n = 1;
  std::from_chars(members.n.data(), members.n.data() + members.n.size(), n);
  const std::size_t prompts = std::min<std::size_t>(count_prompts(members.prompt), kMaxChoices);
  const std::uint64_t choices = std::min(n, kMaxChoices) * std::uint64_t{prompts};
  return static_cast<std::uint32_t>(std::clamp<std::uint64_t>(choices, 1, kMaxChoices));
}

std::string prompt_of(const Members& members) {
  std::string text;
  for (const std::string_view part :
       {members.instructions, members.system, members.messages, members.input, members.prompt}) {
    text += part.substr(0, kPlacedPromptBytes - text.size());
  }
  return text;
}

}  // namespace

Result<BodyFacts> read_body(std::string_view body) {
  const bool is_json = nlohmann::json::accept(body);
  if (!is_json || JsonWalk(body).front() != '{')
    return fail(Errc::BadRequest, "the body is not a JSON object; send one");
  const Members members = members_of(body);
  if (members.has_emitted) {
    return fail(Errc::BadRequest,
                "the body has the member \"emitted\", which only a gateway may send; leave it out");
  }
  const std::string_view any = members.any_arithmetic;
  if (!any.empty() && any != "true" && any != "false" && any != "null") {
    return fail(Errc::BadRequest,
                fmt::format("any_arithmetic is {}; send true if hosts of another arithmetic may "
                            "continue the text, or leave it out",
                            printable_excerpt(any)));
  }
  BodyFacts facts;
  facts.any_arithmetic = any == "true";
  facts.resumable = members.resumable == "true";
  if (members.model.starts_with('"')) facts.model = decoded(members.model);
  facts.prompt = prompt_of(members);
  facts.form = members.stream == "true" ? AnswerForm::Events : AnswerForm::Document;
  facts.choices = choices_of(members);
  return facts;
}

std::string with_emitted(std::string_view body, const EmittedTokens& emitted) {
  const auto last = std::ranges::find_if_not(emitted.rbegin(), emitted.rend(),
                                             [](const auto& tokens) { return tokens.empty(); });
  if (last == emitted.rend()) return std::string(body);
  std::string field = "\"emitted\":[";
  for (auto list = emitted.begin(); list != last.base(); ++list) {
    if (list != emitted.begin()) field += ',';
    fmt::format_to(std::back_inserter(field), "[{}]", fmt::join(*list, ","));
  }
  field += ']';
  const std::size_t inside = body.find('{') + 1;
  const bool is_empty = JsonWalk(body.substr(inside)).front() == '}';
  if (!is_empty) field += ',';
  std::string spliced;
  spliced.reserve(body.size() + field.size());
  return spliced.append(body.substr(0, inside)).append(field).append(body.substr(inside));
}

}  // namespace leasehold::gateway
