// Tests (after `is`), and the lookup of filters and tests by name.
#include <algorithm>
#include <functional>

#include "common/utf8.hpp"
#include "worker/text/chat/jinja/builtins.hpp"
#include "worker/text/chat/jinja/formatting.hpp"
#include "worker/text/chat/jinja/operators.hpp"
#include "worker/text/chat/jinja/text_operations.hpp"
#include "worker/text/chat/jinja/unicode.hpp"

namespace leasehold::jinja {
namespace {

/// A test without arguments.
template <auto holds>
Result<bool> plain(Runtime&, const Value& subject, const BoundArguments&) {
  return std::invoke(holds, subject);
}

bool is_defined(const Value& value) {
  return !value.is_undefined();
}
bool is_true(const Value& value) {
  return value.is<bool>() && value.is_truthy();
}
bool is_false(const Value& value) {
  return value.is<bool>() && !value.is_truthy();
}
/// As in Jinja, undefined is iterable and has no elements.
bool is_iterable(const Value& value) {
  return value.is_text() || value.is<ListRef>() || value.is<DictRef>() || value.is_undefined();
}

template <int remainder>
Result<bool> parity(Runtime& runtime, const Value& subject, const BoundArguments&) {
  const Value rest = TRY(arithmetic(runtime, "%", subject, Value(std::int64_t{2})));
  return are_equal(runtime, rest, Value(std::int64_t{remainder}));
}

Result<bool> divisibleby(Runtime& runtime, const Value& subject, const BoundArguments& given) {
  return are_equal(runtime, TRY(arithmetic(runtime, "%", subject, given.value(0))),
                   Value(std::int64_t{0}));
}

/// A named comparison: `is eq 3`.
template <char first, char second = '\0'>
Result<bool> comparison(Runtime& runtime, const Value& subject, const BoundArguments& given) {
  constexpr char kOperation[] = {first, second};
  return compare(runtime, std::string_view(kOperation, second == '\0' ? 1 : 2), subject,
                 given.value(0));
}

template <Case wanted>
Result<bool> in_its_case(Runtime& runtime, const Value& subject, const BoundArguments&) {
  const MarkedText text = TRY(to_text(runtime, subject));
  if (!is_ascii(text.bytes()))
    return runtime.unsupported("lower and upper are not supported for letters beyond ASCII");
  const Value changed = TRY(convert_case(runtime, text, wanted));
  return *changed.as_text() == text.bytes() && std::ranges::any_of(text.bytes(), is_ascii_letter);
}

constexpr Builtin<Test> kTests[] = {
    {"!=", comparison<'!', '='>, {"other"}},
    {"<", comparison<'<'>, {"other"}},
    {"<=", comparison<'<', '='>, {"other"}},
    {"==", comparison<'=', '='>, {"other"}},
    {">", comparison<'>'>, {"other"}},
    {">=", comparison<'>', '='>, {"other"}},
    {"boolean", plain<&Value::is<bool>>},
    {"callable", plain<&Value::is<CallableRef>>},
    {"defined", plain<is_defined>},
    {"divisibleby", divisibleby, {"num"}},
    {"eq", comparison<'=', '='>, {"other"}},
    {"equalto", comparison<'=', '='>, {"other"}},
    {"even", parity<0>},
    {"false", plain<is_false>},
    {"float", plain<&Value::is<double>>},
    {"ge", comparison<'>', '='>, {"other"}},
    {"greaterthan", comparison<'>'>, {"other"}},
    {"gt", comparison<'>'>, {"other"}},
    {"in", comparison<'i', 'n'>, {"other"}},
    {"integer", plain<&Value::is<std::int64_t>>},
    {"iterable", plain<is_iterable>},
    {"le", comparison<'<', '='>, {"other"}},
    {"lessthan", comparison<'<'>, {"other"}},
    {"lower", in_its_case<Case::Lower>},
    {"lt", comparison<'<'>, {"other"}},
    {"mapping", plain<&Value::is<DictRef>>},
    {"ne", comparison<'!', '='>, {"other"}},
    {"none", plain<&Value::is_none>},
    {"number", plain<&Value::is_number>},
    {"odd", parity<1>},
    {"sequence", plain<is_iterable>},
    {"string", plain<&Value::is_text>},
    {"true", plain<is_true>},
    {"undefined", plain<&Value::is_undefined>},
    {"upper", in_its_case<Case::Upper>},
};

}  // namespace

Result<BoundArguments> bind_arguments(const Runtime& runtime, std::string_view callee,
                                      const ParameterNames& parameters, const Arguments& given) {
  BoundArguments bound{.all = given};
  if (parameters == kAnyArguments) return bound;
  Parameters taken(std::string(callee), given);
  for (std::size_t i = 0; i < parameters.size() && !parameters[i].empty(); ++i)
    bound.values[i] = taken.given(parameters[i]);
  TRY(taken.done(runtime));
  return bound;
}

Result<Value> apply_filter(Runtime& runtime, std::string_view name, const Value& subject,
                           const Arguments& arguments) {
  TRY(runtime.charge_for(subject.is_text() ? subject : Value()));
  for (const auto find : {find_text_filter, find_list_filter, find_number_filter})
    if (const Builtin<Filter>* filter = find(name))
      return filter->function(runtime, subject,
                              TRY(bind_arguments(runtime, name, filter->parameters, arguments)));
  return runtime.unsupported(
      fmt::format("the filter '{}' is not supported", printable_excerpt(name)));
}

Result<bool> apply_test(Runtime& runtime, std::string_view name, const Value& subject,
                        const Arguments& arguments) {
  TRY(runtime.charge(1));
  if (const Builtin<Test>* test = find_builtin(kTests, name))
    return test->function(runtime, subject,
                          TRY(bind_arguments(runtime, name, test->parameters, arguments)));
  return runtime.unsupported(
      fmt::format("the test '{}' is not supported", printable_excerpt(name)));
}

}  // namespace leasehold::jinja
