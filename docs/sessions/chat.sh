# The conversation surface, its lines read from a pipe here; on a terminal they are typed.
#== chat
#> From the middle of November; the last week is the busiest.
#| @@delta
#| {"topics": ["maples in Kyoto"], "summary": "The user asks when the maples in Kyoto turn.", "confidence": 0.9}
#> Then book a room this week: the 20th falls into the busiest days of the year.
#| @@delta
#| {"topics": ["rooms"], "summary": "The user travels to Kyoto on 20 November.", "confidence": 0.8}
taiwa chat chat <<'END'
When do the maples in Kyoto turn?
We come on the 20th.
/state
/why topics[1]
/undo
/cost
END
#== help
echo /help | taiwa chat -c
