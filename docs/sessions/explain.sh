# A constraint, token by token: nothing is asked of a model.
#== text
taiwa explain --regex "[0-9]{1,3}%" "42%"
#== schema
cat > order.json <<'END'
{"type": "object", "required": ["name", "cups"],
 "properties": {"name": {"enum": ["tea", "抹茶"]}, "cups": {"type": "integer", "maximum": 9}}}
END
#! fails
taiwa explain --schema order.json --whitespace compact '{"name":"抹茶","cups":12}'
#== language
taiwa explain --choice "tea,coffee,抹茶" -v
