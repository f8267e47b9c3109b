/// Chat requests: the tenant sends messages, the worker frames them with the chat template.
#include <catch2/catch.hpp>

#include "tests/support/chat_system.hpp"

namespace leasehold::testing {
namespace {

using Catch::Matchers::Contains;

constexpr const char* kBracketed =
    "{{ bos_token }}{% for m in messages %}[{{ m['role'] }}] {{ m['content'] }}\n{% endfor %}"
    "{% if add_generation_prompt %}[assistant]{% endif %}";

TenantSpec chat(const std::string& prompt, std::uint32_t max_tokens) {
  return {.tenant = "ann",
          .prompt = prompt,
          .max_tokens = max_tokens,
          .more = {"--chat", "--system", "Be brief."}};
}

/// Exit code and error text of a failed request.
std::pair<int, std::string> failure_of(System& system, const TenantSpec& spec) {
  const auto tenant = system.start_tenant(spec);
  const int code = tenant->finish();
  return {code, tenant->record().failed.value_or("")};
}

}  // namespace

TEST_CASE("chat: a model without a template gets ChatML") {
  System system({.tenants = {"ann"}});
  const auto framed = system.undisturbed(chat("Hi", 12));
  // The model has no tokens for ChatML's marks, so they are plain text in both prompts.
  const auto spelt_out = system.undisturbed(
      {.tenant = "ann",
       .prompt = "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n"
                 "<|im_start|>assistant\n",
       .max_tokens = 12});
  CHECK(framed.size() == 12);
  CHECK(framed == spelt_out);
  CHECK(framed != system.undisturbed({.tenant = "ann", .prompt = "Hi", .max_tokens = 12}));
}

TEST_CASE("chat: the model's template frames the messages, and a rebind continues the text") {
  ChatSystem system(kBracketed);
  const auto alone = system.start_tenant(chat("Tell me of a fox", 160));
  REQUIRE(alone->finish() == 0);
  // The template writes the same first token as a plain prompt gets.
  CHECK(alone->record().tokens ==
        system.undisturbed({.tenant = "ann",
                            .prompt = "[system] Be brief.\n[user] Tell me of a fox\n[assistant]",
                            .max_tokens = 160}));
  TenantSpec spec = chat("Tell me of a fox", 160);
  spec.rebind = true;
  const auto cut = system.start_streaming(spec, 10);
  system.revoke_mid_request("ann");

  CHECK(cut->finish() == 0);
  CHECK(cut->record().leases.size() == 2);
  CHECK(cut->record().tokens == alone->record().tokens);
  CHECK(cut->record().text == alone->record().text);
}

TEST_CASE("chat: a malformed template fails only requests with messages") {
  ChatSystem system("{{ bos_token }}\n{% include 'other' %}");
  const auto [code, why] = failure_of(system, chat("Hi", 4));
  CHECK(code == exit_code(Errc::UnsupportedModel));
  CHECK_THAT(why, Contains("include") && Contains("line 2"));
  CHECK(system.undisturbed({.tenant = "ann", .max_tokens = 4}).size() == 4);
}

TEST_CASE("chat: the error of a template is in the message of the request error") {
  ChatSystem system(
      "{% set asked = messages[-1].content %}{% if asked == 'never' %}"
      "{{ raise_exception('not that one') }}{% elif asked == 'odd' %}{{ asked | pprint }}"
      "{% elif asked == 'nothing' %}{% else %}{{ asked }}{% endif %}");
  const auto [refused, its_words] = failure_of(system, chat("never", 4));
  CHECK(refused == exit_code(Errc::BadRequest));
  CHECK_THAT(its_words, Contains("not that one"));
  const auto [unsupported, the_filter] = failure_of(system, chat("odd", 4));
  CHECK(unsupported == exit_code(Errc::UnsupportedModel));
  CHECK_THAT(the_filter, Contains("pprint"));
  CHECK(failure_of(system, chat(std::string(100'000, 'x'), 4)).first ==
        exit_code(Errc::PromptTooLong));
  CHECK(system.undisturbed(chat("else", 4)).size() == 4);
  // This model adds a first token, so the prompt is not empty even then.
  CHECK(system.undisturbed(chat("nothing", 4)).size() == 4);
}

}  // namespace leasehold::testing
