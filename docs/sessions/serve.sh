#! builtin
#! serve
# Clients of others at `taiwa serve -m builtin`: their environment names its address and its key.
#== openai
python <<'END'
from openai import OpenAI
client = OpenAI()
first = client.responses.create(model="order", input="Two green teas, please.")
hot = client.responses.create(model="order", input="And a coffee.", previous_response_id=first.id)
cake = client.responses.create(model="order", input="And a cheesecake, please.", previous_response_id=first.id)
print(first.output_text, hot.output_text, cake.output_text, sep="\n")
END
#== anthropic
python <<'END'
from anthropic import Anthropic
client = Anthropic()
said = [{"role": "user", "content": "Two green teas, please."}]
print(client.messages.create(model="order", max_tokens=1000, messages=said).content[0].text)
END
#== llm
#@ mkdir ~/llm && echo '{"taiwa": "KEY"}' > ~/llm/keys.json
#@ echo "[{model_id: order, model_name: order, api_base: $OPENAI_BASE_URL, api_key_name: taiwa}]" > ~/llm/extra-openai-models.yaml
llm -m order "Two green teas, please."
llm -c "And a coffee."
#== ag-ui
curl -sN $URL/ag-ui/agents/order -H "Authorization: Bearer $KEY" -H "Content-Type: application/json" \
  -d '{"threadId": "tea", "runId": "1", "messages": [{"id": "1", "role": "user", "content": "Two green teas, please."}]}'
#== log
taiwa state -s tea
