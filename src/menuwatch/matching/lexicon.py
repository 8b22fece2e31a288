"""Words of the trade that the parser knows: what a product is made into, and words that tell no product from another.

No names of brands or strains: a rule that knew them would fail on all others. Words are in the comparable form of
`catalog.taxonomy.text.words`.
"""

from __future__ import annotations

FORMS: dict[str, tuple[str, ...]] = {
    # What it is smoked in, and how much of it is ready.
    "510": ("cartridge",),
    "510 thread": ("cartridge",),
    "cart": ("cartridge",),
    "carts": ("cartridge",),
    "cartridge": ("cartridge",),
    "cartridges": ("cartridge",),
    "disposable cart": ("disposable",),
    "disposable cartridge": ("disposable",),
    "disposable vape pen": ("disposable",),
    "disposable pen": ("disposable",),
    "disposable": ("disposable",),
    "disposables": ("disposable",),
    "disposo": ("disposable",),
    "dispo": ("disposable",),
    "all in one": ("disposable",),
    "aio": ("disposable",),
    "ready to use": ("disposable",),
    "pod": ("pod",),
    "pods": ("pod",),
    "vape": ("vape",),
    "vapes": ("vape",),
    "vaporizer": ("vape",),
    "vape pen": ("vape",),
    "pen": ("vape",),
    # How the extract is made.
    "distillate": ("distillate",),
    "disty": ("distillate",),
    "live resin": ("live_resin",),
    "liquid live resin": ("live_resin",),
    "liquid live": ("live_resin",),
    "llr": ("live_resin",),
    "lr": ("live_resin",),
    "live rosin": ("rosin", "live"),
    "hash rosin": ("rosin",),
    "cold cure": ("rosin", "cold_cure"),
    "fresh press": ("rosin", "fresh_press"),
    "fresh pressed": ("rosin", "fresh_press"),
    "2nd press": ("rosin", "second_press"),
    "second press": ("rosin", "second_press"),
    "rosin": ("rosin",),
    "solventless": ("solventless",),
    "cured resin": ("cured_resin",),
    "cured": ("cured",),
    "dry resin": ("cured_resin",),
    "live sauce": ("sauce", "live"),
    "sauce": ("sauce",),
    "ls": ("sauce", "live"),
    "live sugar": ("sugar", "live"),
    "sugar wax": ("sugar", "wax"),
    "sugar": ("sugar",),
    "live sand": ("sand", "live"),
    "sand": ("sand",),
    "live badder": ("badder", "live"),
    "live budder": ("badder", "live"),
    "badder": ("badder",),
    "batter": ("badder",),
    "budder": ("badder",),
    "live diamonds": ("diamonds", "live"),
    "liquid diamonds": ("liquid_diamonds",),
    "liquid diamond": ("liquid_diamonds",),
    "diamonds": ("diamonds",),
    "diamond": ("diamonds",),
    "thca": ("diamonds",),
    "thca diamonds": ("diamonds",),
    "isolate": ("isolate",),
    "crumble": ("crumble",),
    "shatter": ("shatter",),
    "wax": ("wax",),
    "caviar": ("caviar",),
    "jam": ("jam",),
    "jelly": ("jam",),
    "hash": ("hash",),
    "bubble hash": ("hash",),
    "temple ball": ("hash",),
    "temple balls": ("hash",),
    "kief": ("kief",),
    "dry sift": ("kief",),
    "rso": ("rso",),
    "feco": ("rso",),
    "live": ("live",),
    # Flower.
    "mixed buds": (),
    "small buds": ("small_buds",),
    "small bud": ("small_buds",),
    "small flower": ("small_buds",),
    "smalls": ("small_buds",),
    "mini buds": ("small_buds",),
    "mini bud": ("small_buds",),
    "minis": ("small_buds",),
    "littles": ("small_buds",),
    "lil buds": ("small_buds",),
    "popcorn": ("small_buds",),
    "popcorn buds": ("small_buds",),
    "ground": ("ground",),
    "ground flower": ("ground",),
    "pre ground": ("ground",),
    "shake": ("ground",),
    "milled": ("ground",),
    "pre roll": ("preroll",),
    "pre rolls": ("preroll",),
    "preroll": ("preroll",),
    "prerolls": ("preroll",),
    "joint": ("preroll",),
    "joints": ("preroll",),
    "cone": ("preroll",),
    "cones": ("preroll",),
    "blunt": ("preroll", "blunt"),
    "blunts": ("preroll", "blunt"),
    "infused": ("infused",),
    "diamond infused": ("infused",),
    "moon rocks": ("infused",),
    "moonrocks": ("infused",),
    # What is eaten, drunk or rubbed in.
    "gummies": ("gummies",),
    "gummy": ("gummies",),
    "jellies": ("gummies",),
    "chews": ("chews",),
    "chew": ("chews",),
    "taffy": ("chews",),
    "chocolate bar": ("chocolate",),
    "chocolates": ("chocolate",),
    "troche": ("troches",),
    "troches": ("troches",),
    "lozenge": ("troches",),
    "lozenges": ("troches",),
    "capsule": ("capsules",),
    "capsules": ("capsules",),
    "softgel": ("capsules",),
    "softgels": ("capsules",),
    "tablet": ("capsules",),
    "tablets": ("capsules",),
    "tincture": ("tincture",),
    "tinctures": ("tincture",),
    "drops": ("tincture",),
    "dropper": ("tincture",),
    "beverage": ("drink",),
    "drink": ("drink",),
    "seltzer": ("drink",),
    "soda": ("drink",),
    "shot": ("drink",),
    "syrup": ("syrup",),
    "lollipop": ("lollipop",),
    "lollipops": ("lollipop",),
    "sucker": ("lollipop",),
    "suckers": ("lollipop",),
    "cookie": ("baked",),
    "brownie": ("baked",),
    "brownies": ("baked",),
    "balm": ("balm",),
    "salve": ("balm",),
    "lotion": ("lotion",),
    "cream": ("lotion",),
    "patch": ("patch",),
    "patches": ("patch",),
    "seeds": ("seeds",),
    "clone": ("clone",),
}
"""Phrases by what they say of the form; the longest phrase at a place counts."""

TEXTURES = frozenset("badder caviar crumble diamonds jam sand sauce shatter sugar wax".split())
PRESSES = frozenset({"cold_cure", "fresh_press", "second_press"})
DEVICES = frozenset({"cartridge", "disposable", "pod"})
EXTRACTS = frozenset(
    """
    badder caviar crumble cured_resin diamonds distillate hash isolate jam kief liquid_diamonds live_resin rosin rso sand sauce
    shatter sugar wax
    """.split()
)
CUTS = frozenset({"ground", "preroll", "small_buds"})
EATEN = frozenset(
    """
    baked balm capsules chews chocolate drink gummies lollipop lotion patch syrup tincture troches
    """.split()
)
RUBBED_IN = frozenset({"balm", "lotion", "patch"})
ONLY_EATEN = frozenset(
    """
    brownie brownies chew cookie drops jellies jelly lollipop lollipops minis shot soda sucker suckers syrup taffy
    """.split()
)
"""Words that are a form of food and part of a name elsewhere: "Orange Cream" is a strain."""
ONLY_RUBBED_IN = frozenset({"cream", "patch"})
"""Words that are a form of what is rubbed in or put on, and part of a flavor: "Cookies & Cream"."""

STRAINS: dict[str, str] = {
    "indica": "indica",
    "sativa": "sativa",
    "hybrid": "hybrid",
    "ind": "indica",
    "sat": "sativa",
    "hyb": "hybrid",
    "indica dominant": "indica",
    "sativa dominant": "sativa",
    "indica hybrid": "indica",
    "sativa hybrid": "sativa",
    "hybrid indica": "indica",
    "hybrid sativa": "sativa",
    "i": "indica",
    "s": "sativa",
    "h": "hybrid",
}
"""The single letters count only in brackets."""

CANNABINOIDS = frozenset(["cbc", "cbd", "cbdv", "cbg", "cbn", "d8", "d9", "delta", "thc", "thcp", "thcv"])

GENERIC = frozenset(
    """
    per time twist a an and bag bags batch blend botanical brand bud buds bulk by cannabis classic collection concentrate concentrates
    container craft ct default device dose ea each edible edibles edition eighth enhanced exclusive extract extracts
    finished flavor flavored flavour flower flowers for fresh from full gram grams greenhouse grown half high hydro in
    indoor jar large limited lto marijuana med medical mg mix mixed natural new of oil on one oral org organic ounce outdoor
    oz pack packaged packed packs pc piece pieces pk pre premium prepack prepackaged product promo pure quality quarter
    rec recreational release reserve sale select series single singles size small smalls special spectrum sublingual sun
    syringe terp terpene terpenes terps the thread tier total use w weed whole with
    """.split()
)
"""Words that tell no product from another: they weigh little."""

EFFECTS = frozenset(
    """
    balance bliss calm chill daytime energize energy focus night nightly nighttime refresh relax rest rise sleep unwind
    uplift wake
    """.split()
)
"""What it is said to do. Of flower and extracts it stands for the strain type; edibles differ by it."""

BRAND_ENDINGS = frozenset(
    """
    brand brands cannabis co collective company corp cultivation extractions extracts farm farms group inc industries
    labs llc ltd supply usa wellness
    """.split()
)
"""Words that menus leave out of a brand's name, or add."""

NO_BRAND = frozenset({
    "", "default", "generic", "house", "misc", "n a", "na", "no brand", "none", "null", "other", "tbd", "unbranded",
    "unknown", "various",
    "accessories", "beverage", "beverages", "cart", "cartridge", "cartridges", "carts", "concentrate", "concentrates", "disposable",
    "disposable vape", "disposables", "edible", "edibles", "flower", "gummies", "pre roll", "pre rolls", "preroll", "prerolls",
    "tinctures", "topicals", "vape", "vape cartridge", "vapes",
})  # fmt: skip
"""What menus write in the brand field where they name no brand: nothing, or a category."""

ABBREVIATIONS: dict[str, tuple[str, ...]] = {
    "gg4": ("gorilla", "glue", "4"),
    "gg": ("gorilla", "glue"),
    "gsc": ("girl", "scout", "cookies"),
    "gdp": ("granddaddy", "purple"),
    "ecsd": ("east", "coast", "sour", "diesel"),
    "nyc": ("new", "york", "city"),
    "sfv": ("san", "fernando", "valley"),
    "gmo": ("garlic", "mushroom", "onion"),
    "wifi": ("white", "fire"),
}
"""Abbreviations of strains that the whole trade uses."""

OF_NAMES = frozenset(
    """
    alien animal apple apricot banana berries berry biscotti black blackberry blood blue blueberry bomb breath bubba
    bubblegum burger butter cake candy caramel cheese chem cherry chocolate cinnamon citrus cola cookies cranberry cream
    crush diesel dog donuts dosidos dragonfruit dream durban express fire frosted fruit fuel funk garlic gas gelato
    ghost ginger glue grape grapefruit green guava gushers haze honey horchata ice jack jealousy kiwi kush lemon
    lemonade lime lychee mac mango marionberry melon milk mimosa mint mints mintz octane og orange papaya passionfruit
    peach peanut pear peppermint pie pineapple pink plum pomegranate pound punch purple rainbow raspberry red rose runtz
    sherb sherbet skunk sorbet sour strawberry sunset super sweet tangerine tangie thai triangle tropical truffle
    vanilla watermelon wedding white widow wild yuzu z zkittlez
    """.split()
)
"""Words of many strains and flavors: however often a brand uses one, it is not the name of a line."""

OF_GEAR = frozenset("a and by ct each for of on one pack pc piece pieces pk the total use w with".split())
"""Words that say nothing of gear: its sizes and colors tell one thing from another."""

HARDWARE = frozenset(
    """
    adapter adjustable atomizer attachment batteries battery bong box bubbler cable cap case charger chargers charging
    coil coils compatible cord device downstem dry empty filler filter glass grinder herb holder holders jar kit kits
    lanyard lighter mod mount mouthpiece pipe power puffco refillable replacement rig rubber screen sleeve stand
    storage tank thread tip tips torch tray tube tubes twist unit usb vaporizer variable voltage wax wrap wraps
    """.split()
)
"""Words of gear for vapes, as against filled cartridges and pods that menus list among it."""

JOINED_TO_BRANDS = ("pods", "pod", "carts", "cart", "pro", "max", "mini", "plus")
"""What names of vapes join with a brand's name."""

CLOTHES = frozenset("crewneck hoodie hoodies polo shirt shirts sweatpants sweatshirt tee tshirt".split())
CLOTHES_SIZES = frozenset("s m l xs xl xxl xxxl 2x 3x 4x 2xl 3xl 4xl sm md lg small medium large".split())
"""Sizes of clothes, which are one product in all of them."""

COLORS = frozenset(
    """
    amber black blue bronze brown copper gold green grey gray navy orange pink purple red rose silver teal violet white
    yellow
    """.split()
)
"""At the end of a vape's name, the color of its hardware: "JMO - Black"."""
