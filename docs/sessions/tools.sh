# The built-in tools, called directly.
#== tools
taiwa tools list
taiwa tools call calculator "1,000 × 5% + 2^-1"
taiwa tools call stoichiometry "Fe + O2 -> Fe2O3"
taiwa tools call molar_mass "CuSO4·5H2O"
