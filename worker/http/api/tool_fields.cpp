#include "worker/http/api/tool_fields.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "common/utf8.hpp"

namespace leasehold::http {
namespace {

constexpr std::size_t kMaxTools = 128;

struct Tool {
  std::string name;
  Field function;
};

Read<Tool> read_tool(const Field& tool) {
  if (!tool.is_object())
    return tool.refuse("a tool is {\"type\": \"function\", \"function\": {\"name\": …}}");
  const Field type = tool["type"];
  if (!type || type.json() != "function")
    return type.refuse(fmt::format("{} is \"function\"; leave other tools out", type.path()));
  const Field function = tool["function"];
  if (!function.is_object())
    return function.refuse(fmt::format("{} is an object with the text 'name'", function.path()));
  const Field name = function["name"];
  const std::string called = TRY(text_of(name, {}));
  if (called.empty()) return name.refuse(fmt::format("{} is the name of the tool", name.path()));
  TRY(check_object(function["parameters"]));
  (void)TRY(flag_of(function["strict"], false));
  return Tool{.name = called, .function = function};
}

Read<std::vector<Tool>> read_all(const Field& tools) {
  std::vector<Tool> all;
  if (!tools) return all;
  TRY(check_array(tools, kMaxTools));
  for (std::size_t i = 0; i < tools.json().size(); ++i) all.push_back(TRY(read_tool(tools.at(i))));
  return all;
}

/// The parameters that are texts, by `"type": "string"` or an `enum` of texts.
std::vector<std::string> text_parameters(const Tool& tool) {
  std::vector<std::string> names;
  const Field parameters = tool.function["parameters"];
  const OrderedJson* properties = parameters ? field_of(parameters.json(), "properties") : nullptr;
  if (properties == nullptr || !properties->is_object()) return names;
  for (const auto& [name, schema] : properties->items()) {
    const OrderedJson* type = field_of(schema, "type");
    const OrderedJson* values = field_of(schema, "enum");
    const auto is_text = [](const OrderedJson& json) { return json.is_string(); };
    const bool is_enum = type == nullptr && values != nullptr && values->is_array() &&
                         !values->empty() && std::ranges::all_of(*values, is_text);
    if ((type != nullptr && *type == "string") || is_enum) names.push_back(name);
  }
  return names;
}

/// Gives the schema its own `$id`, so that "#" in its references means this schema, wherever it is
/// nested.
OrderedJson as_resource(OrderedJson schema, const std::string& id) {
  const OrderedJson* own = field_of(schema, "$id");
  if (own == nullptr || !own->is_string() || *own == "") schema["$id"] = id;
  return schema;
}

/// A schema that accepts the objects that the tool's `parameters` accept. In OpenAI's API a tool
/// without `parameters` has none, so only an empty object.
OrderedJson arguments_schema(const Tool& tool) {
  const Field parameters = tool.function["parameters"];
  OrderedJson any_object{{"type", "object"}};
  if (!parameters) any_object["additionalProperties"] = false;
  if (!parameters || parameters.json().empty()) return any_object;
  const Field type = parameters["type"];
  if (type && type.json() == "object") return parameters.json();
  any_object["allOf"] = OrderedJson::array({as_resource(parameters.json(), tool.function.path())});
  return any_object;
}

OrderedJson call_schema(std::span<const Tool> tools) {
  OrderedJson schema;
  schema["anyOf"] = OrderedJson::array();
  for (const Tool& tool : tools) {
    OrderedJson call{{"type", "object"}};
    call["properties"]["name"]["const"] = tool.name;
    call["properties"]["arguments"] = as_resource(arguments_schema(tool), tool.function.path());
    call["required"] = {"name", "arguments"};
    call["additionalProperties"] = false;
    schema["anyOf"].push_back(std::move(call));
  }
  return schema;
}

bool is_strict(const Tool& tool) {
  const Field strict = tool.function["strict"];
  return strict && strict.json() == true;
}

/// Sets a schema that makes the text a call of the named tool, or of any tool.
Read<void> force_call(const Field& choice, std::span<const Tool> tools, ApiRequest& out) {
  const std::string name = choice["function"]["name"].text();
  const auto named = std::ranges::find(tools, name, &Tool::name);
  OrderedJson schema;
  std::span<const Tool> callable = tools;
  if (!name.empty() && named != tools.end()) {
    out.tool_form = ToolForm::Arguments;
    out.tool_name = name;
    callable = std::span(named, 1);
    schema = arguments_schema(*named);
    out.schema_path = named->function["parameters"].path();
  } else if (choice.json() == "required" && !tools.empty()) {
    out.tool_form = ToolForm::Call;
    schema = call_schema(tools);
    out.schema_path = "tools";
  } else if (tools.empty()) {
    return choice.refuse("tool_choice asks for a call, and there are no tools; send tools too");
  } else if (!name.empty()) {
    return choice.refuse(
        fmt::format("tool_choice: no tool is named '{}'; send its name", printable_excerpt(name)));
  } else {
    return choice.refuse(fmt::format(
        "tool_choice is none, auto, required or one of the tools, got {}", shown(choice.json())));
  }
  out.submit.sampling.response_format = {.type = "json_schema",
                                         .schema = schema.dump(),
                                         .strict = std::ranges::any_of(callable, is_strict)};
  return {};
}

}  // namespace

Read<void> read_tools(const BodyFields& body, const std::string& constraint, ApiRequest& out) {
  const Field choice = body["tool_choice"];
  const bool is_off = choice && choice.json() == "none";
  const Field sent = body["tools"];
  const std::vector<Tool> tools = TRY(read_all(sent));
  out.parallel_tool_calls = TRY(flag_of(body["parallel_tool_calls"], true));
  if (!tools.empty() && !is_off) {
    out.submit.tools = sent.json().dump();
    // A text with a constrained format cannot contain calls; marks of a call in it are content.
    if (constraint.empty()) out.tool_form = ToolForm::Marked;
    for (const Tool& tool : tools)
      out.called_tools.push_back({.name = tool.name, .text_parameters = text_parameters(tool)});
  }
  if (!choice || is_off || choice.json() == "auto") return {};
  if (!constraint.empty())
    return choice.refuse(
        fmt::format("tool_choice and {} exclude each other; send one", constraint));
  return force_call(choice, tools, out);
}

}  // namespace leasehold::http
