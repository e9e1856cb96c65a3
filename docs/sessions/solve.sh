# A question that is reasoned out with tools: the words are written here, the results come from the tools.
#== solve
#> Burning paraffin gives carbon dioxide and water:
#| <<stoichiometry: 0.2 C25H52 + ?O2 -> ?CO2 + ?H2O>>
#> The fraction 38/5 is 7.6 mol of oxygen. A mole of it weighs:
#| <<molar_mass: O2>>
#> So the candle takes:
#| <<calculator: 7.6 × 31.998>>
#> Answer: 243.1848 g
taiwa solve "A candle burns 0.2 mol of paraffin, C25H52. How many grams of oxygen does it take?"
#== trace
#> The discount leaves <<calculator: 100% - 15%>>
#> of the price, which is <<calculator: 24,800 × 0.85>>
#> yen.
#| Answer: 21,080 yen
taiwa solve "A bicycle for 24,800 yen is sold at 15 % off. What is paid?" --tools calculator --trace -v
#== dry
taiwa solve "What is 8 % of 350?" --tools calculator --shots 1 --dry-run
