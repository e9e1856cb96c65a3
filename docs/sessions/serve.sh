#! serve
# Clients of others at `taiwa serve`: their environment names its address and its key.
#== openai
#> 2 green teas. Anything else?
#| @@delta
#| {"items": {"1": {"name": "green tea", "quantity": 2, "options": []}}}
#> 1 coffee. Anything else?
#| @@delta
#| {"items": {"2": {"name": "coffee", "quantity": 1, "options": []}}}
#> 1 cheesecake. Anything else?
#| @@delta
#| {"items": {"2": {"name": "cheesecake", "quantity": 1, "options": []}}}
python <<'END'
from openai import OpenAI
create = OpenAI().responses.create
first = create(model="order", input="Two green teas, please.")
forks = [create(model="order", input=f"And a {what}.", previous_response_id=first.id) for what in ("coffee", "cheesecake")]
print(first.output_text, *(fork.output_text for fork in forks), sep="\n")
END
#== anthropic
#> 2 green teas. Anything else?
#| @@delta
#| {"items": {"1": {"name": "green tea", "quantity": 2, "options": []}}}
python <<'END'
from anthropic import Anthropic
said = [{"role": "user", "content": "Two green teas, please."}]
print(Anthropic().messages.create(model="order", max_tokens=1000, messages=said).content[0].text)
END
#== llm
#@ mkdir ~/llm && echo '{"taiwa": "KEY"}' > ~/llm/keys.json
#@ echo "[{model_id: order, model_name: order, api_base: $OPENAI_BASE_URL, api_key_name: taiwa}]" > ~/llm/extra-openai-models.yaml
#> 2 green teas. Anything else?
#| @@delta
#| {"items": {"1": {"name": "green tea", "quantity": 2, "options": []}}}
llm -m order "Two green teas, please."
#> 1 coffee. Anything else?
#| @@delta
#| {"items": {"2": {"name": "coffee", "quantity": 1, "options": []}}}
llm -c "And a coffee."
#== curl
#> 2 green teas. Anything else?
#| @@delta
#| {"items": {"1": {"name": "green tea", "quantity": 2, "options": []}}}
curl -sN $URL/v1/responses -H "Authorization: Bearer $KEY" -H "Content-Type: application/json" \
  -d '{"model": "order", "input": "Two green teas, please.", "stream": true}' | grep -o '"delta":"[^"]*"' | paste -sd " "
#== ag-ui
#> 2 green teas. Anything else?
#| @@delta
#| {"items": {"1": {"name": "green tea", "quantity": 2, "options": []}}}
python <<'END'
import os, httpx
from ag_ui.core import RunAgentInput, UserMessage
said = [UserMessage(id="1", content="Two green teas, please.")]
run = RunAgentInput(thread_id="tea", run_id="1", messages=said, state={}, tools=[], context=[], forwarded_props={})
url, key = os.environ["URL"] + "/ag-ui/agents/order", {"authorization": "Bearer " + os.environ["KEY"]}
answer = httpx.post(url, headers=key, json=run.model_dump(by_alias=True))
print(*(line for line in answer.iter_lines() if "STATE_DELTA" in line))
END
#== log
taiwa state -s tea
#== events
#> 1 lemonade. Anything else?
#| @@delta
#| {"items": {"1": {"name": "lemonade", "quantity": 1, "options": []}}}
curl -sN $URL/ag-ui/agents/order -H "Authorization: Bearer $KEY" -H "Content-Type: application/json" \
  -d '{"threadId": "tea", "runId": "2", "messages": [{"id": "1", "role": "user", "content": "A lemonade, please."}]}'
