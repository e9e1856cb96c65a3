# An answer that is held to a form: the server is asked to hold it, and it is checked here all the same.
#@ taiwa config set capabilities.written:script.json_schema true
#== generate
cat > order.json <<'END'
{"type": "object", "required": ["drink", "cups"], "additionalProperties": false,
 "properties": {"drink": {"enum": ["tea", "抹茶"]}, "cups": {"type": "integer", "minimum": 1}}}
END
#> {"drink": "抹茶", "cups": 2}
taiwa generate --schema order.json "抹茶を二つください" -v
#> {"drink": "cocoa", "cups": 1}
#! fails
taiwa generate --schema order.json "A cocoa, please."
