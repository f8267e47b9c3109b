// The documented prompt formats of models, each with a template in the style of its family.
// jinja2/compare.py renders the same files with Jinja2.
#include <catch2/catch.hpp>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "common/machine/text_file.hpp"
#include "tests/support/test_paths.hpp"
#include "worker/text/chat/chat_template.hpp"
#include "worker/text/chat/json_value.hpp"
#include "worker/text/chat/tools_as_text.hpp"

using namespace leasehold;
using Json = nlohmann::ordered_json;

namespace {

std::string content_of(const std::filesystem::path& path) {
  return read_text_file(path, 1 << 20).value();
}

std::vector<std::filesystem::path> template_files() {
  std::vector<std::filesystem::path> files;
  const std::string folder = source_dir() + "/tests/unit/worker/text/chat/templates";
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    if (entry.path().extension() == ".jinja") files.push_back(entry.path());
  return files;
}

std::optional<std::string> optional_string(const Json& json, const char* key) {
  if (!json.contains(key)) return std::nullopt;
  return json[key].get<std::string>();
}

Result<MarkedText> rendered(const std::string& source, const Json& test) {
  const auto chat = ChatTemplate::parse(
      source, {.bos = optional_string(test, "bos"), .eos = optional_string(test, "eos")});
  if (!chat) return std::unexpected(chat.error());
  ChatRequest request{.messages = value_from_json(test["messages"]).value(),
                      .add_generation_prompt = test.value("add_generation_prompt", true),
                      .now_unix_s = test.value("now", std::int64_t{0})};
  if (test.contains("tools")) request.tools = value_from_json(test["tools"]).value();
  const Json extra = test.value("extra", Json::object());
  for (const auto& [name, value] : extra.items())
    request.extra.emplace_back(name, value_from_json(value).value());
  return chat->render(request);
}

}  // namespace

TEST_CASE("chat: every known template renders the documented prompt") {
  const auto files = template_files();
  CHECK(files.size() >= 10);
  for (const auto& file : files) {
    const std::string source = content_of(file);
    const Json tests =
        Json::parse(content_of(std::filesystem::path(file).replace_extension(".json")));
    for (const Json& test : tests) {
      INFO(file.stem().string() << ": " << test["title"].get<std::string>());
      const auto text = rendered(source, test);
      if (test.contains("refused")) {
        REQUIRE_FALSE(text.has_value());
        CHECK(text.error().code == Errc::BadRequest);
        CHECK(text.error().detail.ends_with(": " + test["refused"].get<std::string>()));
      } else {
        CHECK((text ? text->bytes() : text.error().detail) == test["expected"].get<std::string>());
      }
    }
  }
}

TEST_CASE("chat: in every known template the marks of turns are the template's own") {
  const ChatMessage messages[] = {{.role = "user", .content = "Hi there"},
                                  {.role = "assistant", .content = "Hello"},
                                  {.role = "user", .content = "Bye"}};
  for (const auto& file : template_files()) {
    INFO(file.stem().string());
    const auto chat = ChatTemplate::parse(content_of(file), {.bos = "<s>", .eos = "</s>"});
    REQUIRE(chat.has_value());
    const auto text = chat->render({.messages = messages_value(messages)});
    REQUIRE(text.has_value());
    std::string of_client;
    std::size_t at = 0;
    for (const auto& [begin, end] : text->from_template()) {
      of_client += text->bytes().substr(at, begin - at);
      at = end;
    }
    of_client += text->bytes().substr(at);
    CHECK(of_client.find("Hi there") != std::string::npos);
    CHECK(of_client.find_first_of("<>|[]") == std::string::npos);
  }
}

TEST_CASE("chat: every known template prints tools, or lets them be written as text") {
  const auto json = [](const char* text) { return value_from_json(Json::parse(text)).value(); };
  const jinja::Value tools = json(
      R"([{"type":"function","function":{"name":"add_up","description":"d","parameters":
          {"type":"object","properties":{"x":{"type":"integer"}}}}}])");
  const jinja::Value calls =
      json(R"([{"id":"1","type":"function","function":{"name":"add_up","arguments":{"x":7}}}])");
  const std::vector<ChatMessage> messages{
      {.role = "user", .content = "1+1?"},
      {.role = "assistant", .content = {}, .more = {{"tool_calls", calls}}},
      {.role = "tool", .content = "the sum is 8"},
      {.role = "tool", .content = "and again"},
      {.role = "user", .content = "Go on"}};
  for (const auto& file : template_files()) {
    INFO(file.stem().string());
    const auto chat = ChatTemplate::parse(content_of(file), {.bos = "<s>", .eos = "</s>"});
    CHECK(chat->uses_tools() == content_of(file).contains("tools"));
    CHECK(needs_tools_as_text(*chat, {}, tools) != chat->uses_tools());
    if (chat->uses_tools()) continue;
    const auto turns = tools_as_text(*chat, messages, tools);
    REQUIRE(turns.has_value());
    const auto text = chat->render({.messages = messages_value(*turns)});
    REQUIRE(text.has_value());
    std::size_t at = 0;
    for (const char* part :
         {"You can call these functions", R"("description": "d")", "1+1?",
          R"({"name": "add_up", "arguments": {"x": 7}})", "the sum is 8", "and again", "Go on"}) {
      CAPTURE(part);
      at = text->bytes().find(part, at);
      CHECK(at != std::string::npos);
    }
    CHECK(text->bytes().find("None") == std::string::npos);
  }
}

TEST_CASE("chat: every known template with tools prints a call of a turn without content") {
  for (const auto& file : template_files()) {
    const auto chat = ChatTemplate::parse(content_of(file), {.bos = "<s>", .eos = "</s>"});
    if (!chat->uses_tools()) continue;
    INFO(file.stem().string());
    const CallStyle& style = chat->call_style();
    const Json arguments{{"x", 1}};
    const Json function{
        {"name", "add"},
        {"arguments", style.arguments_as_text ? Json(arguments.dump()) : arguments}};
    const Json call{{"id", "call00001"}, {"type", "function"}, {"function", function}};
    const jinja::Value calls = value_from_json(Json::array({call})).value();
    ChatMessage turn{.role = "assistant", .content = {}, .more = {{"tool_calls", calls}}};
    if (style.empty_content_as_text) turn.content = "";
    const ChatMessage messages[] = {{.role = "user", .content = "1+1?"}, turn};
    const auto text =
        chat->render({.messages = messages_value(messages), .add_generation_prompt = false});
    REQUIRE(text.has_value());
    CHECK(text->bytes().find("add") != std::string::npos);
    CHECK(text->bytes().find("None") == std::string::npos);
  }
}
