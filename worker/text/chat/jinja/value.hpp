/// The values a template computes with: Python's, as far as templates use them.
///
/// Cheap to copy: text, lists and dicts are shared and never change. A namespace does change, and
/// can so come to hold itself; whoever makes namespaces empties them in the end (Runtime does).
/// Nothing nests deeper than Limits::value_depth, which Runtime sees to, so that walking a value or
/// letting it go cannot exhaust the stack.
///
/// Threads: values without namespaces, loops and callables may be shared.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "common/result.hpp"

namespace leasehold::jinja {

/// A name, attribute or element that is not there. Prints as nothing, is false, has no elements;
/// computing with it is an error.
struct Undefined {
  std::shared_ptr<const std::string> what;  ///< "'x' is undefined"; may be null.
};
struct None {};

struct List;
struct Dict;
struct Namespace;
struct Loop;
struct Callable;

using Text = std::shared_ptr<const std::string>;
using ListRef = std::shared_ptr<const List>;
using DictRef = std::shared_ptr<const Dict>;
using NamespaceRef = std::shared_ptr<Namespace>;
using LoopRef = std::shared_ptr<Loop>;
using CallableRef = std::shared_ptr<const Callable>;

class Value {
 public:
  using Content = std::variant<Undefined, None, bool, std::int64_t, double, Text, ListRef, DictRef,
                               NamespaceRef, LoopRef, CallableRef>;

  Value() = default;  ///< Undefined.
  template <class T>
    requires std::constructible_from<Content, T>
  explicit Value(T content) : content_(std::move(content)) {}

  static Value text(std::string text) {
    return Value(std::make_shared<const std::string>(std::move(text)));
  }
  static Value undefined(std::string what) {
    return Value(Undefined{std::make_shared<const std::string>(std::move(what))});
  }

  const Content& content() const { return content_; }
  template <class T>
  bool is() const {
    return std::holds_alternative<T>(content_);
  }
  template <class T>
  const T* get() const {
    return std::get_if<T>(&content_);
  }

  bool is_undefined() const { return is<Undefined>(); }
  bool is_none() const { return is<None>(); }
  bool is_text() const { return is<Text>(); }
  /// A bool counts as a number, as in Python.
  bool is_integer() const { return is<bool>() || is<std::int64_t>(); }
  bool is_number() const { return is_integer() || is<double>(); }

  /// Null unless it is one.
  const std::string* as_text() const { return is<Text>() ? get<Text>()->get() : nullptr; }
  const List* as_list() const { return is<ListRef>() ? get<ListRef>()->get() : nullptr; }
  const Dict* as_dict() const { return is<DictRef>() ? get<DictRef>()->get() : nullptr; }

  /// For `is_integer()` and `is_number()` alone.
  std::int64_t integer() const { return is<bool>() ? *get<bool>() : *get<std::int64_t>(); }
  double number() const { return is<double>() ? *get<double>() : static_cast<double>(integer()); }

  /// Python's is_truthy: false for what is empty, zero, None or undefined.
  bool is_truthy() const;

  /// How deep containers nest in it; 0 for a plain value.
  std::uint32_t depth() const;

  /// As Python calls it: "str", "dict".
  std::string_view type_name() const;

 private:
  Content content_;
};

struct List {
  std::vector<Value> items;
  bool is_tuple = false;
  std::uint32_t depth = 1;
};

/// In the order of insertion.
struct Dict {
  using Entry = std::pair<Value, Value>;
  std::vector<Entry> entries;
  std::uint32_t depth = 1;

  /// Null when the key is not there.
  const Value* find(std::string_view key) const;
};

struct Namespace {
  std::unordered_map<std::string, Value> attributes;
};

/// What `loop` is inside a `for`.
struct Loop {
  ListRef items;
  std::size_t index0 = 0;
};

struct Arguments {
  std::vector<Value> positional;
  std::vector<std::pair<std::string, Value>> named;
};

/// Macros, methods of values, global functions.
struct Callable {
  std::string name;
  std::function<Result<Value>(const Arguments&)> call;
  std::uint32_t depth = 1;  ///< One more than that of what `call` holds.
};

}  // namespace leasehold::jinja
