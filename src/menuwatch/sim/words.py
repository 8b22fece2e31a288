"""Words that menus are made of, with the oddities that real ones have: double spaces, trailing spaces, quotes, Greek letters."""

from __future__ import annotations

STRAINS = (
    "Blue Fern", "Copper Haze", "Desert Plum", "Night Orchard", "Lemon Anvil", "Quiet Thunder", "Paper Moon", "Red Canyon",
    "Sugar Lantern", "Velvet Mango", "Winter Pear", "Amber Drift", "Cherry Static", "Ghost Papaya", "Honey Signal",
    "Iron Peach", "Juniper Fog", "Kettle Kush", "Lunar Melon", "Mossy Gelato", "North Fig", "Opal Cake", "Pepper Cloud",
    "Quince Diesel", "River Zkittle", "Salt Flat Sour", "Tiger Custard", "Umber OG", "Violet Engine", "Walnut Sherb",
    "Yuzu Bomb", "Zinc Cookies", "Banana Anchor", "Cactus Truffle", "Dune Runtz", "Echo Grape", "Fuzzy Atlas",
    "Granite Mint", "Hollow Berry", "Indigo Rain", "Jolly Quartz", "Maple Comet", "Neon Guava", "Olive Jet", "Plaid Pie",
)  # fmt: skip

BRANDS = (
    ("Cobalt Farms", "Cobalt Farms"), ("Cedar & Sons ", "Cedar & Sons "), ("Big Jar O' Buds", "Big Jar O Buds"),
    ("&Glow", "&Glow"), ("(the) Remedy", "(the) Remedy"), ("Dr. Alder's", "Dr. Alder's"), ("Ninefold", "Ninefold"),
    ("Harbor Lab", "HarborLab"), ("Señor Verde", "Señor Verde"), ("Twelve Acres", "Twelve Acres"),
    ("Old Post", "Old Post"), ("Marrow", "Marrow"), ("High Prairie", "High Prairie"), ("Lucent", "Lucent "),
    ("Moth & Flame", "Moth & Flame"), ("Tall Grass Co.", "Tall Grass Co."), ("Βeta Greens", "Βeta Greens"),
    ("Sundial", "Sundial"), ("Fieldnote", "Fieldnote"), ("Kiln", "Kiln"),
)  # fmt: skip

BRAND_TEXT = (
    "A good harvest begins long before the first seed is planted. Our growers walk the rooms every morning, trim by hand and "
    "cure slowly, because what is rushed is never as good. Each batch is tested by an independent laboratory, packed in small "
    "numbers and dated by the person who packed it – if something is not right, we want to know who to ask.\n\n"
    "We began in a barn with four lamps and a borrowed scale. Today the barn is a museum of our mistakes, and the lamps are "
    "museum pieces, but the scale is still in use: it has never been wrong. From the classics to crosses that have no name "
    "yet, everything we sell is something we would give to a friend."
)

SUBCATEGORIES = {
    "Flower": ("premium", "infused-buds", "pre-ground", "small-buds", "", None),
    "Pre-Rolls": ("singles", "infused", "packs", "", None),
    "Vaporizers": ("cartridges", "cured-resin-cartridge", "disposables", "live-resin-disposable"),
    "Concentrate": ("sugar", "badder", "budder", "crumble", "live-resin", "rosin"),
    "Edible": ("gummies", "chocolates", "drinks"),
    "Tincture": ("tinctures", ""),
    "Topicals": ("balms", "lotions", "bath-products"),
    "Oral": ("capsules-tablets", "sublingual"),
    "Accessories": ("batteries", "grinders", "trays", "dab-tools", "cleaning-solutions", None),
}

NOUNS = {
    "Flower": ("Flower", "Small Buds", "Ground Flower"),
    "Pre-Rolls": ("Pre-Roll", "Infused Pre-Roll", "PR 2pk"),
    "Vaporizers": ("Cartridge", "Live Resin Disposable", "Cured Resin Cartridge"),
    "Concentrate": ("Live Sugar", "Badder", "Rosin"),
    "Edible": ("Gummies", "Chocolate", "Seltzer"),
    "Tincture": ("Tincture", "Drops"),
    "Topicals": ("Balm (500mg)", "Lotion"),
    "Oral": ("10mg Troche", "Capsules"),
    "Accessories": ("Battery", 'Brush 2"', "Grinder", "Serving Tray (7x5)"),
}

EFFECTS = (
    (("calm", 9), ("happy", 8), ("relaxed", 6), ("energetic", 5)),
    (("Calm", 9), ("Happy", 8), ("Relaxed", 6), ("Pain-Relief", 5)),
    (("energetic", 9), ("creative", 8), ("inspired", 8), ("focused", 8)),
    (("sleepy", 8), ("euphoric", 8), ("relaxed", 9), ("painRelief", 5)),
    (("Clear_Mind", 0), ("uplifted", 5)),
    (),
)

CANNABINOIDS = {
    "D9": "THC-D9 (Delta 9–tetrahydrocannabinol)",
    "THCA": "THCA (Δ9-tetrahydrocannabinolic acid)",
    "CBD": "CBD (Cannabidiol)",
    "CBDA": "CBDA (Cannabidiolic acid)",
    "CBG": "CBG (Cannabigerol)",
    "CBGA": "CBGA (Cannabigerolic acid)",
    "CBN": "CBN (Cannabinol)",
    "TAC": '"TAC" - Total Active Cannabinoids',
}

PLACES = (
    # city, state, country, zip code, latitude, longitude, time zone
    ("Phoenix", "AZ", "USA", "85004", 33.4484, -112.0740, "America/Phoenix"),
    ("Pittsburgh", "PA", "USA", "15222", 40.4406, -79.9959, "US/Eastern"),
    ("Ann Arbor", "MI", "USA", "48104", 42.2808, -83.7430, "America/Detroit"),
    ("Tucson", "AZ", "USA", "85701", 32.2226, -110.9747, "America/Phoenix"),
    ("Worcester", "MA", "USA", "01608", 42.2626, -71.8023, "America/New_York"),
    ("Bellingham", "WA", "USA", "98225", 48.7519, -122.4787, "America/Los_Angeles"),
    ("Chicago", "IL", "USA", "60607", 41.8781, -87.6298, "US/Central"),
    ("Portland", "OR", "USA", "97204", 45.5152, -122.6784, "America/Los_Angeles"),
    ("Newark", "NJ", "USA", "07102", 40.7357, -74.1724, "US/Eastern"),
    ("Detroit", "MI", "USA", "48226", 42.3314, -83.0458, "America/Detroit"),
)

ONTARIO = (
    ("Sault Ste. Marie", "ON", "Canada", "P6A 3Z9", 46.5136, -84.3358, "America/Toronto"),
    ("Ajax", "ON", "Canada", "L1S 7L7", 43.8509, -79.0204, "America/Toronto"),
    ("Toronto", "ON", "Canada", "M5V 2T6", 43.6532, -79.3832, "America/Toronto"),
)

SHOP_NAMES = (
    "Green Lantern", "Four Corners", "The Daily Leaf", "Canopy House", "Mile Marker", "High Tide", "Juniper & Co.",
    "Slow Burn", "North Star Provisions", "The Potting Shed", "Copper Kettle", "Second Story",
)  # fmt: skip

DISTRICTS = (
    "Midtown", "Riverside", "Old Town", "Eastgate", "Harbor Street", "University", "Mill Creek", "Westfield", "Depot Square",
    "Orchard Park", "Lakeview", "Union Station", "Fairgrounds", "South End", "Ironworks", "Canal Street", "Highland",
    "Cedar Hill", "Market Street", "Stone Bridge", "Northgate", "Prospect", "Railyard", "Sunnyside", "Airport Road",
    "Foothills", "Greenway", "Hillcrest", "Parkside", "Quarry Lane", "Rosewood", "Summit", "Theater Row", "Valley View",
    "Waterfront", "Willow Bend", "Arts District", "Brickyard", "Crosstown", "Garden City",
)  # fmt: skip
CORNERS = ("", "North", "South", "East", "West", "Plaza", "Commons", "Village", "Center", "Annex")
"""Suffixes that distinguish stores of one chain in one district."""

STATE_NAMES = {
    "AZ": "Arizona", "PA": "Pennsylvania", "MI": "Michigan", "MA": "Massachusetts", "WA": "Washington", "IL": "Illinois",
    "OR": "Oregon", "NJ": "New Jersey", "ON": "Ontario",
}  # fmt: skip
"""The states of the market by their codes."""
