/// A JSON schema document: the path of each part, the targets of references, and the remaining
/// budget of work. Internal to worker/text/grammar, because it includes all of nlohmann/json.
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

/// Precondition of all functions: the parts passed to them belong to this document. Threads: one.
class SchemaContext {
 public:
  /// `work` outlives the context. Errors: BadRequest for text that is not JSON, or that nests
  /// deeper than 64 levels.
  static Result<SchemaContext> parse(std::string_view text, bool strict, WorkBudget& work);

  const OrderedJson& root() const { return *root_; }
  WorkBudget& work() { return *work_; }

  /// BadRequest with the path of `part`, for example "#/properties/age". Of a long path, only the
  /// end.
  std::unexpected<Error> error(const OrderedJson& part, const std::string& what) const;
  /// The same, for a keyword that lenient mode ignores.
  std::unexpected<Error> strict_error(const OrderedJson& part, const std::string& what) const {
    return error(part, what + "; remove it, or ignore it with \"strict\": false (--lenient)");
  }
  Result<void> spend(const OrderedJson& part, std::size_t steps);
  std::unexpected<Error> too_much_work(const OrderedJson& part) const;

  /// The member of an object of this document; null if there is none. Faster than OrderedJson,
  /// which searches all members.
  const OrderedJson* find(const OrderedJson& object, const std::string& name);

  /// The schema that the `$ref` of `schema` names. Null if it names another document, which strict
  /// mode refuses and lenient mode adds to `unchecked`.
  Result<const OrderedJson*> target(const OrderedJson& schema);

  /// Refuses the keyword in strict mode. Adds it to `unchecked` in lenient mode.
  Result<void> refuse_unenforceable(const OrderedJson& schema, const std::string& keyword);
  void add_unchecked(const OrderedJson& schema, const std::string& what);
  const UncheckedParts& unchecked() const { return unchecked_; }
  bool is_strict() const { return strict_; }

 private:
  struct Place {
    const OrderedJson* parent;
    const OrderedJson* resource;  ///< The nearest part around it that has an `$id`, or the root.
    std::string key;
  };
  /// A resource, and a name that is known in it.
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
  std::map<ScopedName, const OrderedJson*> by_name_;  ///< Named by `$id` or "#anchor".
  using Members = std::unordered_map<std::string_view, const OrderedJson*>;
  std::unordered_map<const OrderedJson*, Members> members_;  ///< By object, once it was searched.
  bool strict_;
  WorkBudget* work_;
  std::set<std::pair<const OrderedJson*, std::string>> noted_;  ///< All unchecked parts.
  UncheckedParts unchecked_;
};

}  // namespace leasehold
