/// A JSON schema document: where each part lies, what references name, and how much work may still
/// be done. Internal to worker/text/grammar, because it includes all of nlohmann/json.
#pragma once

#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <unordered_map>

#include "common/result.hpp"
#include "worker/text/grammar/grammar.hpp"
#include "worker/text/grammar/work_budget.hpp"

namespace leasehold {

/// Members keep their order.
using OrderedJson = nlohmann::ordered_json;

/// Lifetime: the parts given to it are its own. Threads: one.
class SchemaContext {
 public:
  /// `work` outlives the context. Errors: BadRequest for text that is not JSON, or that nests
  /// deeper than 64 levels.
  static Result<SchemaContext> parse(std::string_view text, bool strict, WorkBudget& work);

  const OrderedJson& root() const { return *root_; }
  WorkBudget& work() { return *work_; }

  /// BadRequest with the path of `part`, for example "#/properties/age"; of a long one the end.
  std::unexpected<Error> error(const OrderedJson& part, const std::string& what) const;
  /// The same for what a schema that is not strict ignores.
  std::unexpected<Error> strict_error(const OrderedJson& part, const std::string& what) const {
    return error(part, what + "; remove it, or ignore it with \"strict\": false (--lenient)");
  }
  Result<void> spend(const OrderedJson& part, std::size_t steps);
  std::unexpected<Error> too_much_work(const OrderedJson& part) const;

  /// The member of an object of this document; null if there is none. OrderedJson searches all of
  /// them.
  const OrderedJson* find(const OrderedJson& object, const std::string& name);

  /// The schema that the `$ref` of `schema` names. Null for another document, which is refused if
  /// `strict`, else added to `unchecked`.
  Result<const OrderedJson*> target(const OrderedJson& schema);

  /// Refuses the keyword, or with `strict` false adds it to `unchecked`.
  Result<void> cannot_promise(const OrderedJson& schema, const std::string& keyword);
  void add_unchecked(const OrderedJson& schema, const std::string& what);
  const UncheckedParts& unchecked() const { return unchecked_; }
  bool is_strict() const { return strict_; }

 private:
  struct Place {
    const OrderedJson* parent;
    const OrderedJson* resource;  ///< The nearest part around it that has an `$id`, or the root.
    std::string key;
  };
  /// A name, and a resource that it is declared in.
  using ScopedName = std::pair<const OrderedJson*, std::string>;

  SchemaContext(OrderedJson root, bool strict, WorkBudget& work);
  void index_parts(const OrderedJson& part, const Place& place);
  void add_names(const OrderedJson& schema, const OrderedJson& resource);
  void add_name(const OrderedJson& schema, const OrderedJson& resource, const std::string& name);
  const OrderedJson* outer_resource(const OrderedJson& resource) const;
  const OrderedJson* named(const OrderedJson& schema, const std::string& name) const;
  const OrderedJson* part_of(const OrderedJson& resource, const std::string& pointer) const;
  std::string path_of(const OrderedJson& part) const;

  std::unique_ptr<OrderedJson> root_;
  std::unordered_map<const OrderedJson*, Place> places_;
  std::map<ScopedName, const OrderedJson*> by_name_;  ///< By `$id`, and "#anchor".
  using Members = std::unordered_map<std::string_view, const OrderedJson*>;
  std::unordered_map<const OrderedJson*, Members> members_;  ///< Of the objects searched so far.
  bool strict_;
  WorkBudget* work_;
  std::set<std::pair<const OrderedJson*, std::string>> noted_;  ///< All that is not checked.
  UncheckedParts unchecked_;
};

}  // namespace leasehold
