/// What one rendering may still spend, where it is, and the making of values within its limits.
/// Filters, tests, methods and operators get nothing else.
///
/// Errors: BadRequest for what Python would raise (the messages do not suit the template);
/// UnsupportedModel for what we lack; PromptTooLong for a rendering that takes too many steps or
/// bytes. All name the line.
/// Threads: one. Lifetime: values made here may be used after it, but namespaces are empty by then.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <vector>

#include "worker/text/chat/jinja/limits.hpp"
#include "worker/text/chat/jinja/value.hpp"

namespace leasehold::jinja {

class Runtime {
 public:
  explicit Runtime(const Limits& limits) : limits_(limits), steps_left_(limits.steps) {}
  ~Runtime();
  Runtime(const Runtime&) = delete;
  Runtime& operator=(const Runtime&) = delete;

  const Limits& limits() const { return limits_; }

  /// The line of the template that is being evaluated, from 1.
  int line() const { return line_; }
  void set_line(int line) { line_ = line; }

  Result<void> charge(std::uint64_t steps);
  Result<void> charge_bytes(std::uint64_t bytes) { return charge(1 + bytes / 64); }
  /// For looking at all of a text, a list or a dict; not at what is in its elements.
  Result<void> charge_for(const Value& value);

  Result<Value> text(std::string text);
  Result<Value> list(std::vector<Value> items);
  Result<Value> tuple(std::vector<Value> items);
  Result<Value> dict(std::vector<Dict::Entry> entries);
  Result<Value> callable(std::string name, const Value& held,
                         std::function<Result<Value>(const Arguments&)> call);
  Value make_namespace();

  /// `detail` is what went wrong, with the values; where it was is added.
  std::unexpected<Error> bad_request(std::string_view detail) const;
  std::unexpected<Error> unsupported(std::string_view detail) const;
  std::unexpected<Error> too_long(std::string_view detail) const;

  /// The elements of what can be iterated: list, tuple, keys of a dict, characters of a text; none
  /// of what is undefined.
  Result<std::vector<Value>> elements(const Value& value);

 private:
  Result<Value> make_list(std::vector<Value> items, bool is_tuple);
  Result<std::uint32_t> depth_above(std::uint32_t depth) const;

  Limits limits_;
  std::uint64_t steps_left_;
  int line_ = 1;
  std::vector<NamespaceRef> namespaces_;
};

/// `value["name"]`, `value.name` without methods: the entry or attribute, or undefined.
Value member(const Value& value, std::string_view name);

/// What a call gave, taken in the order of the callee's parameters.
class Parameters {
 public:
  Parameters(std::string callee, const Arguments& given)
      : callee_(std::move(callee)), given_(given) {}

  /// The next parameter, by place or else by name; null when it was not given.
  const Value* given(std::string_view name);
  /// The same, with what it is when it was not given.
  Value next(std::string_view name, Value fallback = Value(None{}));
  /// By name alone.
  const Value* named(std::string_view name);

  /// BadRequest when more was given than was taken.
  Result<void> done(const Runtime& runtime) const;

 private:
  std::string callee_;
  const Arguments& given_;
  std::size_t position_ = 0;
  std::size_t taken_by_name_ = 0;
};

}  // namespace leasehold::jinja
