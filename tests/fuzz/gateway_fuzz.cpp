// What hosts and clients send to a gateway: the stream of an answer, a host's report and list, a
// body. Input: one byte for form and choices, one for the size of pieces, then the bytes, which are
// read as each of the four. A stream must mean the same in every division into pieces, and its
// client gets whole groups only.
#include <nlohmann/json.hpp>

#include "tests/fuzz/input.hpp"
#include "tools/gateway/decide/list_page.hpp"
#include "tools/gateway/decide/request_body.hpp"
#include "tools/gateway/decide/text_continuation.hpp"

using namespace leasehold;
using namespace leasehold::gateway;

namespace {

constexpr std::string_view kIdentity =
    "sha256:1111111111111111111111111111111111111111111111111111111111111111/int8/f16/1";

/// What a stream means, as one text.
struct Meaning {
  std::string events;
  std::string client;  // of a stream of events
  bool is_refused = false;
  bool operator==(const Meaning&) const = default;
};

void check_group(const TokenGroup& group, std::vector<std::uint32_t>& positions) {
  fuzz::check(group.choice < positions.size() && group.token >= 0);
  fuzz::check(group.position == positions[group.choice]++);
  fuzz::check(group.bytes.empty() || group.bytes.ends_with("\n\n"));
  fuzz::check(!group.bytes.starts_with(':') && !group.bytes.contains("\n:"));
}

void add(const HostEvent& event, Meaning& meaning, std::vector<std::uint32_t>& positions) {
  if (const auto* group = std::get_if<TokenGroup>(&event)) {
    check_group(*group, positions);
    meaning.events += 't' + std::to_string(group->token) + group->bytes;
    meaning.client += group->bytes;
  } else if (const auto* ending = std::get_if<EndingGroup>(&event)) {
    meaning.events += 'e' + ending->bytes;
    meaning.client += ending->bytes;
  } else if (const auto* error = std::get_if<HostError>(&event)) {
    fuzz::check(!error->error.detail.empty());
    meaning.events += 'x' + error->bytes;
  } else {
    meaning.events += 'b';
  }
}

Meaning read_stream(std::string_view bytes, std::size_t piece, AnswerForm form,
                    const HostStreamLimits& limits) {
  HostStreamParser parser(form, limits, {});
  std::vector<std::uint32_t> positions(limits.choices, 0);
  Meaning meaning;
  while (!bytes.empty() && !meaning.is_refused) {
    std::vector<HostEvent> events;
    const Result<void> read = parser.read(bytes.substr(0, piece), events);
    for (const HostEvent& event : events) add(event, meaning, positions);
    meaning.is_refused = !read;
    bytes.remove_prefix(std::min(piece, bytes.size()));
  }
  return meaning;
}

/// The only host of a request sends the stream: the client gets what it means, or an error.
void check_client(std::string_view bytes, AnswerForm form, const HostStreamLimits& limits,
                  const Meaning& meaning) {
  const TimePoint now{1'000'000'000};
  HostTable hosts = *HostTable::create({"h:1"}, std::chrono::seconds(1));
  hosts.reported(
      HostId{0},
      {.name = "h", .models = {{"m", std::string(kIdentity)}}, .ready = true, .code = ""}, now);
  TextContinuation text({.model = "m", .form = form, .limits = limits, .max_moves = 0});
  TextActions actions;
  text.on(RequestArrived{}, hosts, now, actions);
  text.on(HostAccepted{AttemptId{1}, std::string(kIdentity)}, hosts, now, actions);
  text.on(HostBytes{AttemptId{1}, bytes}, hosts, now, actions);
  std::string client;
  for (const TextAction& action : actions) {
    if (const auto* forwarded = std::get_if<Forward>(&action)) client += forwarded->bytes;
  }
  if (form == AnswerForm::Events) fuzz::check(client.starts_with(meaning.client));
  if (meaning.is_refused) fuzz::check(text.has_ended());
}

void check_body(std::string_view body) {
  const Result<BodyFacts> facts = read_body(body);
  if (!facts) return fuzz::check(facts.error().code == Errc::BadRequest);
  fuzz::check(facts->choices >= 1 && facts->choices <= kMaxChoices);
  const auto before = nlohmann::json::parse(body);
  auto after = nlohmann::json::parse(with_emitted(body, {{1}, {2, 3}}));
  fuzz::check(after.at("emitted") == nlohmann::json::parse("[[1],[2,3]]"));
  after.erase("emitted");
  fuzz::check(after == before);
}

void check_list(std::string_view body) {
  auto list = read_host_list(body);
  if (!list) return fuzz::check(list.error().code == Errc::MalformedMessage);
  const std::size_t count = std::min<std::size_t>(list->entries.size(), 3);
  const auto page = page_of({*list, HostList{}}, 3, ListOrder::NewestFirst);
  fuzz::check(page.at("data").size() == count && !page.dump().empty());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::Input input{{data, size}};
  const std::uint8_t kind = input.byte();
  const std::size_t piece = 1 + input.byte();
  const AnswerForm form = kind & 1 ? AnswerForm::Document : AnswerForm::Events;
  const HostStreamLimits limits{.choices = 1u + (kind >> 1) % 4,
                                .max_line_bytes = 200,
                                .max_group_bytes = 400,
                                .max_ending_bytes = 600,
                                .max_document_bytes = 600};
  const auto rest = input.rest();
  const std::string_view bytes(reinterpret_cast<const char*>(rest.data()), rest.size());
  const Meaning whole = read_stream(bytes, std::max<std::size_t>(1, bytes.size()), form, limits);
  fuzz::check(read_stream(bytes, piece, form, limits) == whole);
  check_client(bytes, form, limits, whole);
  if (const auto report = HostReport::parse(bytes); !report)
    fuzz::check(!report.error().detail.empty());
  check_body(bytes);
  check_list(bytes);
  return 0;
}
