#include "common/ordered_json.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

namespace leasehold {
namespace {

using Json = nlohmann::ordered_json;
/// The vector that stores an object's members; appending to it takes no lookup.
using Members = Json::object_t::Container;

/// Keeps the first member of each name, with the value of the last member of that name.
void merge_repeated(Members& members) {
  std::vector<std::size_t> by_name(members.size());
  std::iota(by_name.begin(), by_name.end(), std::size_t{0});
  std::ranges::stable_sort(by_name, {},
                           [&](std::size_t i) -> const std::string& { return members[i].first; });
  std::vector<char> is_repeated(members.size());
  std::size_t repeated = 0, first = 0;
  for (std::size_t i = 1; i < by_name.size(); ++i) {
    if (members[by_name[i]].first != members[by_name[first]].first) {
      first = i;
      continue;
    }
    members[by_name[first]].second = std::move(members[by_name[i]].second);
    is_repeated[by_name[i]] = true;
    ++repeated;
  }
  if (repeated == 0) return;
  Members kept;
  kept.reserve(members.size() - repeated);
  for (std::size_t i = 0; i < members.size(); ++i)
    if (!is_repeated[i]) kept.emplace_back(members[i].first, std::move(members[i].second));
  members = std::move(kept);
}

/// Builds the value from the parser's events. A handler that returns false would end the parse.
class Builder final : public nlohmann::json_sax<Json> {
 public:
  Json& root() { return root_; }
  const std::string& error() const { return error_; }

  bool null() override { return add(nullptr); }
  bool boolean(bool value) override { return add(value); }
  bool number_integer(number_integer_t value) override { return add(value); }
  bool number_unsigned(number_unsigned_t value) override { return add(value); }
  bool number_float(number_float_t value, const string_t&) override { return add(value); }
  bool string(string_t& value) override { return add(std::move(value)); }
  bool binary(binary_t& value) override { return add(std::move(value)); }
  bool start_object(std::size_t) override { return open(Json::object()); }
  bool start_array(std::size_t) override { return open(Json::array()); }
  bool key(string_t& name) override {
    members().emplace_back(std::move(name), Json());
    return true;
  }
  bool end_object() override {
    merge_repeated(members());
    open_.pop_back();
    return true;
  }
  bool end_array() override {
    open_.pop_back();
    return true;
  }
  bool parse_error(std::size_t, const std::string&,
                   const nlohmann::detail::exception& error) override {
    error_ = error.what();
    return false;
  }

 private:
  Members& members() { return open_.back()->get_ref<Json::object_t&>(); }
  Json& place(Json value) {
    if (open_.empty()) return root_ = std::move(value);
    if (open_.back()->is_object()) return members().back().second = std::move(value);
    return open_.back()->emplace_back(std::move(value));
  }
  bool add(Json value) {
    place(std::move(value));
    return true;
  }
  bool open(Json empty) {
    open_.push_back(&place(std::move(empty)));
    return true;
  }

  Json root_;
  // the open containers, outermost first; none of them moves while it is open
  std::vector<Json*> open_;
  std::string error_;
};

}  // namespace

Result<Json> parse_ordered_json(std::string_view text) {
  Builder builder;
  if (!Json::sax_parse(text, &builder)) return fail(Errc::BadRequest, builder.error());
  return std::move(builder.root());
}

Json ordered_object(std::vector<std::pair<std::string, Json>> members) {
  Json object = Json::object();
  Members& stored = object.get_ref<Json::object_t&>();
  stored.reserve(members.size());
  for (auto& [name, value] : members) stored.emplace_back(std::move(name), std::move(value));
  merge_repeated(stored);
  return object;
}

bool nests_deeper_than(int levels, const Json& json) {
  if (!json.is_structured()) return false;
  if (levels == 0) return true;
  return std::ranges::any_of(
      json, [levels](const Json& part) { return nests_deeper_than(levels - 1, part); });
}

}  // namespace leasehold
