#include "tools/brokerctl/describe/history.hpp"

#include <algorithm>

#include "ipc/client/parse_message.hpp"

namespace leasehold::brokerctl {
namespace {

using wire::Json;

constexpr std::size_t kMostShown = 10;
constexpr std::uint64_t kEventsRead = 4000;
constexpr std::uint64_t kEventsPerCall = 1000;
constexpr std::uint64_t kActionsRead = 1000;

Result<std::uint64_t> sequence_in(const Json& object, const char* field) {
  const auto found = object.find(field);
  if (found != object.end() && found->is_number_unsigned()) return found->get<std::uint64_t>();
  return fail(Errc::MalformedMessage, std::string("the broker's events have no ") + field);
}

}  // namespace

bool names_thing(const Json& event, const std::string& noun, const std::string& name) {
  const std::string object = noun + ":" + name;
  return std::ranges::any_of(event.items(), [&](const auto& field) {
    if (!field.value().is_string()) return false;
    const auto& value = field.value().template get_ref<const std::string&>();
    if (field.key() == "object") return value == object;
    const bool is_of_noun = field.key() == noun || field.key().ends_with("_" + noun);
    return is_of_noun && value == name;
  });
}

Result<std::vector<Json>> newest_events(const std::string& noun, const std::string& name,
                                        const Dependencies& dependencies) {
  const Json probe = TRY(dependencies.call("event.list", {{"after", 0}, {"limit", 0}}));
  const std::uint64_t newest = TRY(sequence_in(probe, "newest"));
  std::uint64_t after = newest - std::min(newest, kEventsRead);
  std::vector<Json> found;
  while (after < newest) {
    const Json reply =
        TRY(dependencies.call("event.list", {{"after", after}, {"limit", kEventsPerCall}}));
    const auto items = reply.find("items");
    if (items == reply.end() || !items->is_array())
      return fail(Errc::MalformedMessage, "the broker's reply has no list of events");
    const std::uint64_t before = after;
    for (const Json& event : *items) {
      if (!event.is_object()) return fail(Errc::MalformedMessage, "an event is not an object");
      after = std::max(after, TRY(sequence_in(event, "sequence")));
      if (names_thing(event, noun, name)) found.push_back(event);
    }
    if (after == before) break;  // the broker has dropped the rest
  }
  if (found.size() > kMostShown)
    found.erase(found.begin(), found.end() - static_cast<std::ptrdiff_t>(kMostShown));
  return found;
}

Result<std::vector<wire::OperatorActionView>> newest_actions(const std::string& noun,
                                                             const std::string& name,
                                                             const Dependencies& dependencies) {
  const auto reply = dependencies.call("operator_action.list", {{"limit", kActionsRead}});
  if (!reply) {
    const Errc code = reply.error().code;
    if (code == Errc::BadRequest || code == Errc::PermissionDenied)
      return std::vector<wire::OperatorActionView>{};
    return std::unexpected(reply.error());
  }
  auto actions = TRY(client::parse_items<wire::OperatorActionView>(*reply));
  const std::string object = noun + ":" + name;
  std::erase_if(actions, [&](const auto& action) { return action.object != object; });
  if (actions.size() > kMostShown) actions.resize(kMostShown);
  return actions;
}

}  // namespace leasehold::brokerctl
