# A process is killed in the middle of a turn, between a call that was answered and one that was not.
#== resume
#@ taiwa config set prices.written:script.input 1
#@ taiwa config set prices.written:script.output 4
#! kill
#> Six it is.
#| @@delta
#| {"topics": "dinner for six"}
taiwa say chat "Dinner for six."
taiwa cost
#> {"topics": ["dinner for six"]}
taiwa resume -v
taiwa state get topics
taiwa cost
