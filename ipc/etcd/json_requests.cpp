#include <nlohmann/json.hpp>
#include <utility>

#include "ipc/control/transport/base64.hpp"
#include "ipc/etcd/json_gateway.hpp"

namespace leasehold::etcd {
namespace {

using Json = nlohmann::json;

Json number(Revision revision) {
  return std::to_string(revision.value);
}

Json json_of(const KeyRange& range) {
  Json json{{"key", control::to_base64(range.first)}};
  if (!range.end.empty()) json["range_end"] = control::to_base64(range.end);
  return json;
}

Json json_of(const Compare& compare) {
  const bool is_created = compare.field == Compare::Field::Created;
  return {{"key", control::to_base64(compare.key)},
          {"target", is_created ? "CREATE" : "MOD"},
          {"result", compare.is_equal ? "EQUAL" : "NOT_EQUAL"},
          {is_created ? "create_revision" : "mod_revision", number(compare.revision)}};
}

Json json_of(const Put& put) {
  const Json request{{"key", control::to_base64(put.key)},
                     {"value", control::to_base64(put.value)}};
  return {{"request_put", request}};
}
Json json_of(const Delete& erased) {
  return {{"request_delete_range", json_of(erased.range)}};
}
Json json_of(const Get& get) {
  Json request = json_of(get.range);
  if (get.newest_only) {
    request["keys_only"] = true;
    request["limit"] = "1";
    request["sort_order"] = "DESCEND";
    request["sort_target"] = "MOD";
  }
  return {{"request_range", std::move(request)}};
}

template <class Item>
Json json_of(const std::vector<Item>& items) {
  Json list = Json::array();
  for (const Item& item : items) list.push_back(json_of(item));
  return list;
}

Json json_of(const std::vector<Operation>& operations) {
  Json list = Json::array();
  for (const Operation& operation : operations)
    list.push_back(std::visit([](const auto& one) { return json_of(one); }, operation));
  return list;
}

}  // namespace

std::string range_body(const RangePage& page) {
  Json json = json_of(page.range);
  if (page.revision.value > 0) json["revision"] = number(page.revision);
  if (page.limit > 0) json["limit"] = std::to_string(page.limit);
  return json.dump();
}

std::string transaction_body(const Transaction& transaction) {
  return Json{{"compare", json_of(transaction.conditions)},
              {"success", json_of(transaction.success)},
              {"failure", json_of(transaction.failure)}}
      .dump();
}

std::string watch_body(const KeyRange& range, Revision from) {
  Json create = json_of(range);
  create["start_revision"] = number(from);
  return Json{{"create_request", std::move(create)}}.dump();
}

std::string authenticate_body(std::string_view user, std::string_view password) {
  return Json{{"name", user}, {"password", password}}.dump(-1, ' ', false,
                                                           Json::error_handler_t::replace);
}

}  // namespace leasehold::etcd
