"""Transactions that TON"s own code made, with their fields as @ton/core 0.63.1 reads them. Used by the tests."""

from typing import Any, Final

TRANSACTIONS: Final[dict[str, tuple[str, dict[str, Any]]]] = {
    "coin_to_an_empty_address": (
        "te6cckECBQEAAQgAA6941e7wPY23+hclX12T7r+BdwGEUQ4+bn+aYB2UCzGzrOAAAAAAAPQkAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
        "AAAAAAAAAAAAAAAAAAa0nSAAABgIAQMEAQGgAgCtSAAiIiIiIiIiIiIiIiIiIiIiIiIiIiIiIiIiIiIiIiIiIwAjV7vA9jbf6FyVfXZPuv4F"
        "3AYRRDj5uf5pgHZQLMbOs5QSoF8gAAAAAAAAAAAAAAAAAABAAIJykK7Illr6uxbrw8ubQI665xthjXh4i8gNCYQ1k8rJjaTnuFAwzyfuNWaH"
        "1UMvy1ntmNbS53lv54Ts+S2IpAFN/gARDAlBKgXyAAEgDENLSw==",
        {
            "hash": "e1134466317708055fb1af1bdf3fab037963d2e43cd956edb3352512820c6ddd",
            "lt": 1000000,
            "now": 1800000000,
            "total_fees": 0,
            "before": "none",
            "after": "uninit",
            "kind": "internal",
            "units": 20000000000,
            "bounced": False,
            "sent": [],
            "storage_fees": 0,
            "storage_due": 0,
            "due_collected": 0,
            "skipped": "no_state",
            "success": False,
            "exit_code": 0,
            "gas": 0,
            "action": None,
            "aborted": True,
            "bounce": None,
            "destroyed": False,
            "previous": ("", 0),
        },
    ),
    "returned": (
        "te6cckECBwEAAXUAA7Vzzfpdz2GQFctrmdXzkbPpb1AZwWZ9QLCuQ5sm2yxLfKAAAAAAAehIAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
        "AAAAAAAAAAAAAAAAAAa0nSAAAD5gQRpoAQUGAgHgAgMAq2gAIiIiIiIiIiIiIiIiIiIiIiIiIiIiIiIiIiIiIiIiIiMADzfpdz2GQFctrmdX"
        "zkbPpb1AZwWZ9QLCuQ5sm2yxLfKQ7msoAAAAAAAAAAAAAAAAAABAAQHfBAC5WAB5v0u57DICuW1zOr5yNn0t6gM4LM+oFhXIc2TbZYlvlQAE"
        "RERERERERERERERERERERERERERERERERERERERERFDuUr4ABggjWgAAAAAAPQkC1pOkAH/////AAIJykK7Illr6uxbrw8ubQI665xthjXh4"
        "i8gNCYQ1k8rJjaSQrsiWWvq7FuvDy5tAjrrnG2GNeHiLyA0JhDWTysmNpAAfBAkO5rKAAcAwII0zBBGtQKNwqmY=",
        {
            "hash": "e148dfb7b2c026888fdd72438700597c812cc4ae9cc7c89ce8adc476b312bc52",
            "lt": 2000000,
            "now": 1800000000,
            "total_fees": 133331,
            "before": "none",
            "after": "none",
            "kind": "internal",
            "units": 1000000000,
            "bounced": False,
            "sent": [("0:1111", 999600000, 266669)],
            "storage_fees": 0,
            "storage_due": 0,
            "due_collected": 0,
            "skipped": "no_state",
            "success": False,
            "exit_code": 0,
            "gas": 0,
            "action": None,
            "aborted": True,
            "bounce": "returned",
            "destroyed": False,
            "previous": ("", 0),
        },
    ),
    "first_request": (
        "te6cckECJAEABWEAA7V41e7wPY23+hclX12T7r+BdwGEUQ4+bn+aYB2UCzGzrOAAAAAACJVEDhE0RmMXcIBV+xrxvfP6sDeWPS5DzZVu2zNS"
        "USggxt3QAAAAAAD0JAa0nSAAACRsIUWIASAhAgHgAh0CRYgBGr3eB7G2/0Lkq+uyfdfwLuAwiiHHzc/zTAOygWY2dZweAxkCATQEGAEU/wD0"
        "pBP0vPLICwUCASAGEQIBSAcIAtzQINdJwSCRW49jINcLHyCCEGV4dG69IYIQc2ludL2wkl8D4IIQZXh0brqOtIAg1yEB0HTXIfpAMPpE+Cj6"
        "RDBYvZFb4O1E0IEBQdch9AWDB/QOb6ExkTDhgEDXIXB/2zzgMSDXSYECgLmRMOBw4hQTAgEgCRACASAKDQIBbgsMABmtznaiaEAg65Drhf/A"
        "ABmvHfaiaEAQ65DrhY/AAgFIDg8AF7Ml+1E0HHXIdcLH4AARsmL7UTQ1woAgABm+Xw9qJoQICg65D6AsAQLyEgEeINcLH4IQc2lnbrry4Ip/"
        "EwHmjvDtou37IYMI1yICgwjXIyCAINch0x/TH9Mf7UTQ0gDTHyDTH9P/1woACvkBQMz5EJoolF8K2zHh8sCH3wKzUAew8tCEUSW68uCFUDa6"
        "8uCG+CO78tCIIpL4AN4BpH/IygDLHwHPFsntVCCS+A/ecNs82BQD9u2i7fsC9AQhbpJsIY5MAiHXOTBwlCHHALOOLQHXKCB2HkNsINdJwAjy"
        "4JMg10rAAvLgkyDXHQbHEsIAUjCw8tCJ10zXOTABpOhsEoQHu/Lgk9dKwADy4JPtVeLSAAHAAJFb4OvXLAgUIJFwlgHXLAgcEuJSELHjDyDX"
        "ShUWFwCWAfpAAfpE+Cj6RDBYuvLgke1E0IEBQdcY9AUEnX/IygBABIMH9FPy4IuOFAODB/Rb8uCMItcKACFuAbOw8tCQ4shQA88WEvQAye1U"
        "AHIw1ywIJI4tIfLgktIA7UTQ0gBRE7ry0I9UUDCRMZwBgQFA1yHXCgDy4I7iyMoAWM8Wye1Uk/LAjeIAEJNb2zHh10zQAFGAAAAAP///iL9V"
        "OUn6Crh6VgYxVf2HyUK6DXxd0PAx+Pfu4bN9ekNqIAGhc2lnbn///xFrSdJaAAAAAIMSI0kjnN+CbxXBOLjFStYTZYI7z/v8ejIOXaoyV6+4"
        "YNK6RR+++Ko0MsKHzBW4EBztprAUgmKlm0vXQjwQ00EgGgIKDsPIbQMbHAAAAWhiABx6r0IhY05XOoOrCl2IvmYhLMK2JljgoO+tEw0m+ij0"
        "IC+vCAAAAAAAAAAAAAAAAAABHwEB3x4BsWgBGr3eB7G2/0Lkq+uyfdfwLuAwiiHHzc/zTAOygWY2dZ0ADj1XoRCxpyudQdWFLsRfMxCWYVsT"
        "LHBQd9aJhpN9FHoQF9eEAAYOWwgAAAAAARKogtaTpADAHwCmD4p+pQAAAAAAAAAHIDCYAHm/S7nsMgK5bXM6vnI2fS3qAzgsz6gWFchzZNtl"
        "iW+VACNXu8D2Nt/oXJV9dk+6/gXcBhFEOPm5/mmAdlAsxs6zggIAgnLnuFAwzyfuNWaH1UMvy1ntmNbS53lv54Ts+S2IpAFN/r4CBHY2H7BW"
        "Y2xvj/vt9Gxt62uZApwN59DK1zF9iqFIAg0MBhjxKYRAIiMAnUJpYxOIAAAAAAAAAAAjwAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
        "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAACAAb8mFYiBMDlrwAAAAAAACAAAAAAADwuPh/JDpXmHi+s5SC74yskBkxcJ3Y0fh"
        "7bpGft/wpXhAkCrMwQjQpg==",
        {
            "hash": "4b695081b3dda11a6b605b39e037d716f55e6a4fe51a9a1de2646ec56544f7c7",
            "lt": 9000000,
            "now": 1800000000,
            "total_fees": 6359596,
            "before": "uninit",
            "after": "active",
            "kind": "in",
            "units": 0,
            "bounced": False,
            "sent": [("0:38f5", 100000000, 470404)],
            "storage_fees": 0,
            "storage_due": 0,
            "due_collected": 0,
            "skipped": None,
            "success": True,
            "exit_code": 0,
            "gas": 1975600,
            "action": (True, 0, 1, 0, 1, 705600),
            "aborted": False,
            "bounce": None,
            "destroyed": False,
            "previous": ("e1134466", 1000000),
        },
    ),
    "jettons": (
        "te6cckECIQEABmIAA7V4Fp4dDwUzGgCexYt0b55Tpq/xGaS6gRSmDqrxcpCAKXAAAAAACn2MAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
        "AAAAAAAAAAAAAAAAAAa0nSAAAFxoR4dIAR0eAgHgAhcCsWgAceq9CIWNOVzqDqwpdiL5mISzCtiZY4KDvrRMNJvoo9EAIFp4dDwUzGgCexYt"
        "0b55Tpq/xGaS6gRSmDqrxcpCAKXQFgqNwAZSzhYAAAAAATEtAtaTpAHgAxYCATQFBAGHCAB5v0u57DICuW1zOr5yNn0t6gM4LM+oFhXIc2Tb"
        "ZYlvlQAkgoDBcJRIOs+Mqr+cGLbzwY7tAoEngjU6BlBHdrEOeOAFART/APSkE/S88sgLBgIBYgcVAgLMCAsCAdQJCgDDCDHAJJfBOAB0NMDA"
        "XGwlRNfA/AM4PpA+kAx+gAxcdch+gAx+gAwc6m0AALTH4IQD4p+pVIgupUxNFnwCeCCEBeNRRlSILqWMUREA/AK4DWCEFlfB7y6k1nwC+BfB"
        "IQP8vCAAET6RDBwuvLhTYAIBIAwUAgEgDQ8B8VA9M/+gD6QCHwAe1E0PoA+kD6QNQwUTahUirHBfLiwSjC//LiwlQ0QnBUIBNUFAPIUAT6Al"
        "jPFgHPFszJIsjLARL0APQAywDJIPkAcHTIywLKB8v/ydAE+kD0BDH6ACDXScIA8uLEd4AYyMsFUAjPFnD6AhfLaxPMgOAJ6CEBeNRRnIyx8Z"
        "yz9QB/oCIs8WUAbPFiX6AlADzxbJUAXMI5FykXHiUAioE6CCCcnDgKAUvPLixQTJgED7ABAjyFAE+gJYzxYBzxbMye1UAgEgEBMC9ztRND6A"
        "PpA+kDUMAjTP/oAUVGgBfpA+kBTW8cFVHNtcFQgE1QUA8hQBPoCWM8WAc8WzMkiyMsBEvQA9ADLAMn5AHB0yMsCygfL/8nQUA3HBRyx8uLDC"
        "voAUaihggiYloBmtgihggiYloCgGKEnlxBJEDg3XwTjDSXXCwGAREgBwUnmgGKGCEHNi0JzIyx9SMMs/WPoCUAfPFlAHzxbJcYAQyMsFJM8W"
        "UAb6AhXLahTMyXH7ABAkECMAfMMAI8IAsI4hghDVMnbbcIAQyMsFUAjPFlAE+gIWy2oSyx8Syz/JcvsAkzVsIeIDyFAE+gJYzxYBzxbMye1U"
        "ANc7UTQ+gD6QPpA1DAH0z/6APpAMFFRoVJJxwXy4sEnwv/y4sIFggkxLQCgFrzy4sOCEHvdl97Iyx8Vyz9QA/oCIs8WAc8WyXGAGMjLBSTPF"
        "nD6AstqzMmAQPsAQBPIUAT6AljPFgHPFszJ7VSAAg9QBBrkPaiaH0AfSB9IGoYAmmPwQgLxqKMqRBdQQg97svvCd0JWPlxYumfmP0AGAnQKB"
        "HkKAJ9ASxniwDni2Zk9qpAAboPYF2omh9AH0gfSBqGEApReNRRkAAAAAAAAAByAwmAEavd4Hsbb/QuSr67J91/Au4DCKIcfNz/NMA7KBZjZ1"
        "nQAjV7vA9jbf6FyVfXZPuv4F3AYRRDj5uf5pgHZQLMbOs4QFAgHdGBsBASAZAatIAQLTw6HgpmNAE9ixbo3zynTV/iM0l1AilMHVXi5SEAUv"
        "AA836Xc9hkBXLa5nV85Gz6W9QGcFmfUCwrkObJtssS3yhAQGDBOyAAAAAAFPsYLWk6QAwBoAYHNi0JwAAAAAAAAAByAwmAEavd4Hsbb/QuSr"
        "67J91/Au4DCKIcfNz/NMA7KBZjZ1nAEBIBwAyUgBAtPDoeCmY0AT2LFujfPKdNX+IzSXUCKUwdVeLlIQBS8AI1e7wPY23+hclX12T7r+BdwG"
        "EUQ4+bn+aYB2UCzGzrOQEDUFfAYII1oAAAAAAU+xhNaTpABqmTttgAAAAAAAAAPAAIJykK7Illr6uxbrw8ubQI665xthjXh4i8gNCYQ1k8rJ"
        "jaQx/TRJ5I77v3BbQDt8pbcfjlLH8jZRKjYnrXMWHUAeowIVBAkBYKjcGGel0BEfIACeROUMDhs8AAAAAAAAAAC+AAAAAAAAAAAAAAAAAAAA"
        "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAABvyYeUoEwUNugAAAAAAAQAAAAAAAVMEJJxgWYzVHd7"
        "FlQqh6UBeKBJeaCGV/sO6I2NvBntzkDQOlRxhqZj",
        {
            "hash": "b83f406a014a3dc7410bb74ed524e81d20d366896a164715e480911fe872bb15",
            "lt": 11000000,
            "now": 1800000000,
            "total_fees": 4340794,
            "before": "none",
            "after": "active",
            "kind": "internal",
            "units": 92447600,
            "bounced": False,
            "sent": [("0:3cdf", 1, 395737), ("0:8d5e", 67977567, 266669)],
            "storage_fees": 0,
            "storage_due": 0,
            "due_collected": 0,
            "skipped": None,
            "success": True,
            "exit_code": 0,
            "gas": 4009600,
            "action": (True, 0, 2, 0, 2, 993600),
            "aborted": False,
            "bounce": None,
            "destroyed": False,
            "previous": ("", 0),
        },
    ),
    "refused": (
        "te6cckECCQEAAkcAA7Vzj1XoRCxpyudQdWFLsRfMxCWYVsTLHBQd9aJhpN9FHoAAAAAADk4cDBh3zID9zzOsB/r5gCCHQfkOKnsyPod0OIfs"
        "kMmFUP7QAAAAAAmJaAa0nSAAADRiZuhoAQYHAgHgAgQBsWgBGr3eB7G2/0Lkq+uyfdfwLuAwiiHHzc/zTAOygWY2dZ0ADj1XoRCxpyudQdWF"
        "LsRfMxCWYVsTLHBQd9aJhpN9FHoQF9eEAAYOnbIAAAAAAas/AtaTpADAAwCuD4p+pQAAAAAAAAAHcDjX6kxoAAgAeb9LuewyArltczq+cjZ9"
        "LeoDOCzPqBYVyHNk22WJb5UAI1e7wPY23+hclX12T7r+BdwGEUQ4+bn+aYB2UCzGzrOAAQHfBQD5WABx6r0IhY05XOoOrCl2IvmYhLMK2Jlj"
        "goO+tEw0m+ij0QAjV7vA9jbf6FyVfXZPuv4F3AYRRDj5uf5pgHZQLMbOs5AXemBABggjWgAAAAABycOC1pOkAH////+HxT9SgAAAAAAAAAO4"
        "HGv1JjQABAA836Xc9hkBXLa5nUAAgnIQruslG62g7h3lG89FuwvkIeFv+iT2z96qOyroqTWhWMXa2uOJxWtc/8Mby6WjsTBiJ+zEglduALDc"
        "8zItEhqkASUECQF9eEAQYiXODgGBBGmYII1qCACeQV/sD0JAAAAABYQAAABIAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
        "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAMC3Tgk=",
        {
            "hash": "d3147351ddd304daa11dcec2806832dad60c2cc75b313c0b68ddf3118f9faeb2",
            "lt": 15000000,
            "now": 1800000000,
            "total_fees": 1259331,
            "before": "active",
            "after": "active",
            "kind": "internal",
            "units": 100000000,
            "bounced": False,
            "sent": [("0:8d5e", 98474000, 266669)],
            "storage_fees": 0,
            "storage_due": 0,
            "due_collected": 0,
            "skipped": None,
            "success": False,
            "exit_code": 706,
            "gas": 1126000,
            "action": None,
            "aborted": True,
            "bounce": "returned",
            "destroyed": False,
            "previous": ("c1877cc8", 10000000),
        },
    ),
    "bounced": (
        "te6cckECBwEAAbYAA7V41e7wPY23+hclX12T7r+BdwGEUQ4+bn+aYB2UCzGzrOAAAAAAD0JAAqTz7C3BaWmjKBF+BKzHcjGgQovoSwidnKOj"
        "trW7Z+8AAAAAAA1Z+Aa0nSAAABRgl/QIAQMEAQGgAgD5WABx6r0IhY05XOoOrCl2IvmYhLMK2JljgoO+tEw0m+ij0QAjV7vA9jbf6FyVfXZP"
        "uv4F3AYRRDj5uf5pgHZQLMbOs5AXemBABggjWgAAAAABycOC1pOkAH////+HxT9SgAAAAAAAAAO4HGv1JjQABAA836Xc9hkBXLa5nUAAgnIM"
        "o1AsGpp9XgqRoao+QO8YOIPfLw7KV9jKtFD6MK+cK56kaqckQHvv11PLVZ0IOZMewphSBDDF4M2P3plERSToAhUMCQF3pgQYYJf0EQUGAJ5A"
        "YUwPBqQAAAAAAAAAABcAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAFvA"
        "AAAAAAAAAAAAAAABLUUtpEnlC4z33SeGHxRhIq/htUa7i3D8ghbwxhQTn44Eld3Ung==",
        {
            "hash": "b69c19dce3f4e8f03ccc8baed6345c4acfd36992eb586ce8f5d99099969d0646",
            "lt": 16000000,
            "now": 1800000000,
            "total_fees": 311200,
            "before": "active",
            "after": "active",
            "kind": "internal",
            "units": 98474000,
            "bounced": True,
            "sent": [],
            "storage_fees": 0,
            "storage_due": 0,
            "due_collected": 0,
            "skipped": None,
            "success": True,
            "exit_code": 0,
            "gas": 311200,
            "action": (True, 0, 0, 0, 0, 0),
            "aborted": False,
            "bounce": None,
            "destroyed": False,
            "previous": ("2a4f3ec2", 14000000),
        },
    ),
    "skipped": (
        "te6cckECEAEAAqMAA7V41e7wPY23+hclX12T7r+BdwGEUQ4+bn+aYB2UCzGzrOAAAAAAEDZkC2nBnc4/To8DzMi67WNFxKz9NpkutYbOj12Z"
        "CZlp0GRgAAAAAA9CQAa0nSAAADRnKsOoAQwNAgHgAgkBRYgBGr3eB7G2/0Lkq+uyfdfwLuAwiiHHzc/zTAOygWY2dZwMAwGhc2lnbn///xFr"
        "SdJaAAAAAoeosMejM42hUdckNQgZbiC36EWadZBZS+mLxq8fdxot5h7O8DunYdm+UOkpSNW1Vo05bc6m2d87LguHiQn/qQMgBAIKDsPIbQMF"
        "CAIKDsPIbQMGBwAAAG5CAB5v0u57DICuW1zOr5yNn0t6gM4LM+oFhXIc2TbZYlvlOBxr9SY0AAAAAAAAAAAAAAAAAAAAAWJCAAiIiIiIiIiI"
        "iIiIiIiIiIiIiIiIiIiIiIiIiIiIiIiIiCgAAAAAAAAAAAAAAAABCwEB3woBq0gBGr3eB7G2/0Lkq+uyfdfwLuAwiiHHzc/zTAOygWY2dZ0A"
        "BEREREREREREREREREREREREREREREREREREREREREREFAYJqwYAAAAAAgbMgtaTpADACwAWAAAAAGZvciB5b3UAgnKepGqnJEB779dTy1Wd"
        "CDmTHsKYUgQwxeDNj96ZREUk6B6GUESOrBmOz+5DVCfCMIiGVbDFSjPPfkOBFFurNlK8Ag0MBhkULARADg8AnULDAxOIAAAAAAAAAAAqgAAA"
        "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAACAAb8mDoCBMCar0AAAAAAAEAAAA"
        "AgADKTEu/9TfwQw1pUsiT6RINg/TebNMT0maJHhEJg3chAhAkBgMs3Zkiw==",
        {
            "hash": "f4850e25d9b27c00bffb56df06c5a5c806b1a511e18da1cf250a869b7fc2976a",
            "lt": 17000000,
            "now": 1800000000,
            "total_fees": 3757597,
            "before": "active",
            "after": "active",
            "kind": "in",
            "units": 0,
            "bounced": False,
            "sent": [("0:1111", 5, 316803)],
            "storage_fees": 0,
            "storage_due": 0,
            "due_collected": 0,
            "skipped": None,
            "success": True,
            "exit_code": 0,
            "gas": 2262400,
            "action": (True, 0, 2, 1, 1, 475200),
            "aborted": False,
            "bounce": None,
            "destroyed": False,
            "previous": ("b69c19dc", 16000000),
        },
    ),
    "rent_due": (
        "te6cckECBQEAAQoAA7V+luZTHr87JwFbs6nGxIgQeA3Z7KwSpaHJBG1esfFIbZAAAAAAFPsYCOUR3ua9/fGrFrMpSGLZFi8L9wrofpfs7zZ6"
        "n4UPi44wAAAAABMS0AkOHYAAABJnNkooAQMEAQGgAgClSAAiIiIiIiIiIiIiIiIiIiIiIiIiIiIiIiIiIiIiIiIiIwA6W5lMevzsnAVuzqcb"
        "EiBB4DdnsrBKlockEbV6x8UhtkQEAAAAAAAAAAAAAAAAAEAAgnJTakFJ4RNfEDCh4FUIcR0675HEqlPijVpRaz3mt6eolG1ryoFVQGVJ7PRk"
        "H6X+XsbseDr3bmi4a93dTpqQpnm0ABcMzmyUaBHpAw9CAkmt/git",
        {
            "hash": "543da118721249a40f85c40df02f141f8fd2bef7b730febe1dd4abe4b1dfd5e6",
            "lt": 22000000,
            "now": 2430720000,
            "total_fees": 3781201,
            "before": "active",
            "after": "frozen",
            "kind": "internal",
            "units": 1,
            "bounced": False,
            "sent": [],
            "storage_fees": 3781201,
            "storage_due": 150241671,
            "due_collected": 0,
            "skipped": "no_gas",
            "success": False,
            "exit_code": 0,
            "gas": 0,
            "action": None,
            "aborted": True,
            "bounce": None,
            "destroyed": False,
            "previous": ("8e511dee", 20000000),
        },
    ),
    "rent_paid": (
        "te6cckECBQEAAQ4AA7d+luZTHr87JwFbs6nGxIgQeA3Z7KwSpaHJBG1esfFIbZAAAAAAFe88BUPaEYchJJpA+FxA3wLxQfj9K+97cw/r4d1K"
        "vksd/V5gAAAAABT7GAkOHYAAAAqBHpAw6AEDBAEBoAIAq0gAIiIiIiIiIiIiIiIiIiIiIiIiIiIiIiIiIiIiIiIiIiMAOluZTHr87JwFbs6n"
        "GxIgQeA3Z7KwSpaHJBG1esfFIbZQ7msoAAAAAAAAAAAAAAAAAABAAIJybWvKgVVAZUns9GQfpf5exux4OvduaLhr3d1OmpCmebQzQwOV+El8"
        "5L1d3nzIDIt0/+VoQ8slqzC1FfILA36AhgAXDQI9IGHJDuaygAEgSdgsBw==",
        {
            "hash": "eaf4c17ddf1025d2b2adfd43d907c3da8b0fbb645ceb04b3c9f8a15579dc8e2b",
            "lt": 23000000,
            "now": 2430720000,
            "total_fees": 150241671,
            "before": "frozen",
            "after": "frozen",
            "kind": "internal",
            "units": 1000000000,
            "bounced": False,
            "sent": [],
            "storage_fees": 150241671,
            "storage_due": 0,
            "due_collected": 0,
            "skipped": "no_state",
            "success": False,
            "exit_code": 0,
            "gas": 0,
            "action": None,
            "aborted": True,
            "bounce": None,
            "destroyed": False,
            "previous": ("543da118", 22000000),
        },
    ),
}
