"""The GraphQL operations sent to Dutchie, and their persisted-query hashes.

A hash belongs to a build of Dutchie's front end and is refused some time after the next one (13 different ones were seen for
FilteredProducts alone), so hashes are configuration (`DUTCHIE_HASHES`) and these are only the defaults. If a hash is
refused, the query text below is sent instead: it requests only the fields that are read (`brand.imageUrl` for the brand's logo).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

PER_PAGE = 100
"""Products requested per page. The server clamps it (50 and 100 were seen), which paging handles."""

DEFAULT_HASHES: Mapping[str, str] = {
    "FilteredProducts": "ee29c060826dc41c527e470e9ae502c9b2c169720faa0a9f5d25e1b9a530a4a0",
    "ConsumerDispensaries": "0d3ff8648848a737bbbeff9d090854ce2b78a7c4330d4982dab5b32ba2009448",
}

_POTENCY = "{ unit range }"

_FILTERED_PRODUCTS = f"""\
query FilteredProducts(
  $includeEnterpriseSpecials: Boolean = false
  $productsFilter: productsFilterInput!
  $page: Int
  $perPage: Int
) {{
  filteredProducts(
    filter: $productsFilter
    page: $page
    perPage: $perPage
    includeEnterpriseSpecials: $includeEnterpriseSpecials
  ) {{
    products {{
      _id id DispensaryID duplicatedProductId libraryProductId enterpriseProductId
      cName pastCNames
      Name description brandId brandName brand {{ id name description imageUrl }}
      type subcategory strainType Status special medicalOnly recOnly weight effects
      Image images {{ url active }}
      Options rawOptions
      Prices recPrices medicalPrices recSpecialPrices medicalSpecialPrices
      POSMetaData {{
        canonicalID canonicalSKU canonicalCategory canonicalPackageId canonicalLabResultUrl
        children {{
          option quantity quantityAvailable kioskQuantityAvailable canonicalPackageId canonicalLabResultUrl
        }}
      }}
      manualInventory {{ option inventory }}
      isBelowThreshold optionsBelowThreshold optionsBelowKioskThreshold
      limitsPerCustomer {{ key value }}
      specialIdsPerOption {{ option conditionIds rewardIds }}
      measurements {{ netWeight {{ unit values }} }}
      THCContent {_POTENCY}
      CBDContent {_POTENCY}
      cannabinoidsV2 {{ value unit cannabinoid {{ name }} }}
      terpenes {{ value unit libraryTerpene {{ name }} }}
      specialData {{
        saleSpecials {{
          specialId specialName specialType menuType
          discount percentDiscount dollarDiscount targetPrice
          saleDiscounts {{ discountType discountAmount }} eligibleProductOptions
        }}
        bogoSpecials {{
          specialId specialName specialType menuType endStamp
          itemsForAPrice {{ enabled value }}
          discountBundle {{ discountType value }}
          bogoConditions {{ quantity totalQuantity {{ quantity }} }}
          bogoRewards {{ quantity totalQuantity {{ quantity }} discountType discountAmount percentDiscount }}
        }}
      }}
      provider createdAt updatedAt
    }}
    queryInfo {{ totalCount totalPages }}
  }}
}}
"""

_CONSUMER_DISPENSARIES = """\
query ConsumerDispensaries($dispensaryFilter: dispensariesFilterInput!) {
  filteredDispensaries(filter: $dispensaryFilter) {
    id cName name chain status timezone phone email address
    location { ln1 ln2 city state country zipcode geometry { coordinates } }
    recDispensary medicalDispensary
    menuUrl embeddedMenuUrl customDomainSettings { domain }
    enabledOrderTypes { pickup delivery kiosk curbsidePickup }
    retailer { enterpriseId }
    productCategorySummary { category value }
    activeCategories
  }
}
"""


class Operation(Struct, frozen=True):
    """One GraphQL operation: its name, and its full text for when the hash is refused."""

    name: str
    text: str


FILTERED_PRODUCTS = Operation("FilteredProducts", _FILTERED_PRODUCTS)
CONSUMER_DISPENSARIES = Operation("ConsumerDispensaries", _CONSUMER_DISPENSARIES)


def menu_variables(dispensary_id: str, page: int, per_page: int = PER_PAGE) -> dict[str, Any]:
    """Variables of FilteredProducts for one page (from 0) of a store's whole menu.

    `Status: "All"` (null returns nothing) with the threshold filters off also returns inactive and below-threshold items,
    which are stored and never count as in stock. `pricingType: "rec"` returns both price lists.
    """
    return {
        "includeEnterpriseSpecials": False,
        "productsFilter": {
            "dispensaryId": dispensary_id,
            "pricingType": "rec",
            "Status": "All",
            "types": [],
            "useCache": False,
            "isDefaultSort": True,
            "sortBy": "popularSortIdx",
            "sortDirection": 1,
            "bypassOnlineThresholds": True,
            "isKioskMenu": False,
            "removeProductsBelowOptionThresholds": False,
        },
        "page": page,
        "perPage": per_page,
    }
