// The counted work of a rendering grows as the input does.
#include <fmt/format.h>

#include <catch2/catch.hpp>

#include "worker/text/chat/chat_template.hpp"

using namespace leasehold;

namespace {

constexpr std::size_t kMembers = 1000;

/// An object of n members, and a chat of n messages.
ChatRequest request_of(std::size_t n) {
  std::vector<jinja::Dict::Entry> members;
  for (std::size_t i = 0; i < n; ++i)
    members.emplace_back(jinja::Value::text(fmt::format("k{}", i)),
                         jinja::Value::text(fmt::format("v{}", i)));
  const std::vector<ChatMessage> messages(n, {.role = "user", .content = "Hi"});
  return {.messages = messages_value(messages),
          .extra = {{"big", jinja::Value(std::make_shared<const jinja::Dict>(members))}}};
}

/// The smallest limit of steps that the rendering of n members and messages passes.
std::uint64_t steps_of(const ChatTemplate& chat, std::size_t n) {
  const ChatRequest request = request_of(n);
  std::uint64_t least = 1, most = 1'000'000'000;
  while (least < most) {
    const std::uint64_t middle = (least + most) / 2;
    const auto text = chat.render(request, {.steps = middle});
    if (!text) CHECK(text.error().code == Errc::PromptTooLong);
    (text ? most : least) = text ? middle : middle + 1;
  }
  return least;
}

}  // namespace

TEST_CASE("jinja: twice the messages and members take twice the steps") {
  const char* const sources[] = {
      "{% for m in messages %}{{ m.role ~ m['content'] }}{% endfor %}",
      "{% for m in messages %}{% if loop.index0 == messages | length - 1 %}.{% endif %}{% endfor "
      "%}",
      "{% for m in messages %}{{ (messages | first).role ~ messages[-1].role }}{% endfor %}",
      "{% for m in messages %}{% if m == messages[-1] %}.{% endif %}{% endfor %}",
      "{% for m in messages %}{{ big['k7'] ~ big.k9 ~ big.get('k11') }}{% endfor %}",
      "{% for m in messages %}{% if 'k5' in big and 'x' not in big %}.{% endif %}{% endfor %}",
      "{% for key in big %}{{ big[key] }}{% endfor %}",
      "{% for key, value in big.items() %}{{ big.get(key, 'x') }}{% endfor %}",
      "{{ big == dict(big) }}{{ big | tojson }}{{ big }}",
      "{{ big.values() | unique | list | length }}{{ big | map('upper') | join(',') }}",
  };
  for (const char* source : sources) {
    INFO(source);
    const auto chat = ChatTemplate::parse(source, {});
    REQUIRE(chat.has_value());
    const std::uint64_t once = steps_of(*chat, kMembers), twice = steps_of(*chat, 2 * kMembers);
    CHECK(twice < 2 * once + once / 8);
  }
}

TEST_CASE("jinja: 10 000 messages and 32 000 members render within the steps of a request") {
  const auto chat = ChatTemplate::parse(
      "{% for m in messages %}{{ '<|' + m.role + '|>' + m.content | trim + big['k1'] }}"
      "{% if loop.index == messages | length %}.{% endif %}{% endfor %}",
      {});
  ChatRequest request = request_of(10'000);
  request.extra = request_of(32'000).extra;
  CHECK(chat->render(request).has_value());
}
