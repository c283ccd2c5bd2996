"""Nexmark's 24 queries (github.com/nexmark/nexmark, Apache License 2.0) as they are asked here: each stream has a
window where Flink's texts have none, or a window of its own kind; names, conditions and values are the benchmark's.

What was changed beyond that is said beside the query. All 24 count.
"""
from __future__ import annotations

from random import Random

from tests.streams import SECOND, Case, Columns, Row

BATCH = 10 * SECOND
START = 1_735_689_600 * SECOND      # 2025-01-01
STREAMS: dict[str, Columns] = {
    "person": {"id": "bigint", "name": "string", "emailAddress": "string", "creditCard": "string", "city": "string",
               "state": "string", "dateTime": "timestamp", "extra": "string"},
    "auction": {"id": "bigint", "itemName": "string", "description": "string", "initialBid": "bigint",
                "reserve": "bigint", "dateTime": "timestamp", "expires": "timestamp", "seller": "bigint",
                "category": "bigint", "extra": "string"},
    "bid": {"auction": "bigint", "bidder": "bigint", "price": "bigint", "channel": "string", "url": "string",
            "dateTime": "timestamp", "extra": "string"},
}
SIDE_INPUT: Columns = {"key": "bigint", "value": "string"}
B, A, P = "bid AS B [WINDOW 1 MINUTE]", "auction AS A [WINDOW 1 MINUTE]", "person AS P [WINDOW 1 MINUTE]"
WON = "A.id = B.auction AND B.dateTime BETWEEN A.dateTime AND A.expires"
PER_DAY = "bid [WINDOW 1 DAY TUMBLING]"
# TUMBLE and HOP of the texts are windows of their streams; the group by their ends is the boundary.
QUERIES = {
    "q0": f"SELECT auction, bidder, price, dateTime, extra FROM {B}",
    "q1": f"SELECT auction, bidder, 0.908 * price AS price, dateTime, extra FROM {B}",
    "q2": f"SELECT auction, price FROM {B} WHERE MOD(auction, 123) = 0",
    "q3": f"""SELECT P.name, P.city, P.state, A.id FROM {A} INNER JOIN {P} ON A.seller = P.id
        WHERE A.category = 10 AND (P.state = 'OR' OR P.state = 'ID' OR P.state = 'CA')""",
    "q4": f"""SELECT Q.category, AVG(Q.final) AS final FROM (
        SELECT MAX(B.price) AS final, A.category FROM {A}, {B} WHERE {WON} GROUP BY A.id, A.category) AS Q
        GROUP BY Q.category""",
    "q5": """SELECT AuctionBids.auction, AuctionBids.num FROM (
        SELECT auction, COUNT(*) AS num FROM bid [WINDOW 20 SECONDS SLIDE 10 SECONDS] GROUP BY auction) AS AuctionBids
        JOIN (SELECT MAX(CountBids.num) AS maxn FROM (
            SELECT COUNT(*) AS num FROM bid [WINDOW 20 SECONDS SLIDE 10 SECONDS] GROUP BY auction) AS CountBids
        ) AS MaxBids ON AuctionBids.num >= MaxBids.maxn""",
    "q6": f"""SELECT Q.seller, AVG(Q.final) OVER (PARTITION BY Q.seller ORDER BY Q.dateTime ROWS BETWEEN 10 PRECEDING
        AND CURRENT ROW) AS final FROM (
        SELECT A.id, MAX(B.price) AS final, A.seller, MAX(B.dateTime) AS dateTime FROM {A}, {B} WHERE {WON}
        GROUP BY A.id, A.seller) AS Q""",      # an auction's time is that of its last bid; Flink cannot run it
    "q7": """SELECT B.auction, B.price, B.bidder, B.dateTime, B.extra FROM bid AS B [WINDOW 10 SECONDS TUMBLING] JOIN (
        SELECT MAX(price) AS maxprice FROM bid [WINDOW 10 SECONDS TUMBLING]) AS B1 ON B.price = B1.maxprice""",
    "q8": """SELECT P.id, P.name FROM (
        SELECT id, name FROM person [WINDOW 10 SECONDS TUMBLING] GROUP BY id, name) AS P JOIN (
        SELECT seller FROM auction [WINDOW 10 SECONDS TUMBLING] GROUP BY seller) AS A ON P.id = A.seller""",
    "q9": f"""SELECT id, itemName, seller, bidder, price, bid_dateTime FROM (
        SELECT A.id, A.itemName, A.seller, B.bidder, B.price, B.dateTime AS bid_dateTime,
            ROW_NUMBER() OVER (PARTITION BY A.id ORDER BY B.price DESC, B.dateTime ASC) AS rownum
        FROM {A}, {B} WHERE {WON}) AS Q WHERE rownum <= 1""",
    "q10": f"""SELECT auction, bidder, price, dateTime, extra, DATE_FORMAT(dateTime, 'yyyy-MM-dd') AS day,
        DATE_FORMAT(dateTime, 'HH:mm') AS minute FROM {B}""",
    "q11": """SELECT B.bidder, COUNT(*) AS bid_count, session_window.start AS starttime, session_window.end AS endtime
        FROM bid AS B [WINDOW SESSION 10 SECONDS BY bidder] GROUP BY B.bidder""",
    # of processing time in the benchmark, which no answer can be repeated by: of event time here
    "q12": "SELECT bidder, COUNT(*) AS bid_count FROM bid [WINDOW 10 SECONDS TUMBLING] GROUP BY bidder",
    "q13": f"""SELECT B.auction, B.bidder, B.price, B.dateTime, S.value FROM {B} JOIN side_input AS S
        ON MOD(B.auction, 10000) = S.key""",
    # count_char, a function of the benchmark's own, is the difference in length
    "q14": f"""SELECT auction, bidder, 0.908 * price AS price, CASE WHEN HOUR(dateTime) >= 8 AND HOUR(dateTime) <= 18
            THEN 'dayTime' WHEN HOUR(dateTime) <= 6 OR HOUR(dateTime) >= 20 THEN 'nightTime' ELSE 'otherTime' END
            AS bidTimeType, dateTime, extra, LENGTH(extra) - LENGTH(REPLACE(extra, 'c', '')) AS c_counts FROM {B}
        WHERE 0.908 * price > 1000 AND 0.908 * price < 50000""",
    "q15": f"""SELECT DATE_FORMAT(dateTime, 'yyyy-MM-dd') AS day, COUNT(*) AS total_bids,
        COUNT(*) FILTER (WHERE price < 10000) AS rank1_bids,
        COUNT(*) FILTER (WHERE price >= 10000 AND price < 1000000) AS rank2_bids,
        COUNT(DISTINCT bidder) AS total_bidders, COUNT(DISTINCT bidder) FILTER (WHERE price < 10000) AS rank1_bidders,
        COUNT(DISTINCT auction) AS total_auctions, COUNT(DISTINCT auction) FILTER (WHERE price < 10000)
        AS rank1_auctions FROM {PER_DAY} GROUP BY DATE_FORMAT(dateTime, 'yyyy-MM-dd') EVERY 10 SECONDS""",
    "q16": f"""SELECT channel, DATE_FORMAT(dateTime, 'yyyy-MM-dd') AS day,
        MAX(DATE_FORMAT(dateTime, 'HH:mm')) AS minute, COUNT(*) AS total_bids,
        COUNT(*) FILTER (WHERE price < 10000) AS rank1_bids, COUNT(DISTINCT bidder) AS total_bidders,
        COUNT(DISTINCT auction) FILTER (WHERE price >= 10000) AS rank2_auctions
        FROM {PER_DAY} GROUP BY channel, DATE_FORMAT(dateTime, 'yyyy-MM-dd') EVERY 10 SECONDS""",
    "q17": f"""SELECT auction, DATE_FORMAT(dateTime, 'yyyy-MM-dd') AS day, COUNT(*) AS total_bids,
        COUNT(*) FILTER (WHERE price < 10000) AS rank1_bids, MIN(price) AS min_price, MAX(price) AS max_price,
        AVG(price) AS avg_price, SUM(price) AS sum_price
        FROM {PER_DAY} GROUP BY auction, DATE_FORMAT(dateTime, 'yyyy-MM-dd') EVERY 10 SECONDS""",
    "q18": f"""SELECT auction, bidder, price, channel, url, dateTime, extra FROM (
        SELECT *, ROW_NUMBER() OVER (PARTITION BY bidder, auction ORDER BY dateTime DESC) AS rank_number FROM {B}) AS Q
        WHERE rank_number <= 1""",
    "q19": f"""SELECT * FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY auction ORDER BY price DESC) AS rank_number
        FROM {B}) AS Q WHERE rank_number <= 10""",
    "q20": f"""SELECT auction, bidder, price, channel, url, B.dateTime, B.extra, itemName, description, initialBid,
        reserve, A.dateTime AS a_dateTime, expires, seller, category, A.extra AS a_extra FROM {B} INNER JOIN {A}
        ON B.auction = A.id WHERE A.category = 10""",
    "q21": f"""SELECT auction, bidder, price, channel, CASE WHEN LOWER(channel) = 'apple' THEN '0'
            WHEN LOWER(channel) = 'google' THEN '1' WHEN LOWER(channel) = 'facebook' THEN '2'
            WHEN LOWER(channel) = 'baidu' THEN '3' ELSE REGEXP_EXTRACT(url, '(&|^)channel_id=([^&]*)', 2) END
            AS channel_id FROM {B}
        WHERE REGEXP_EXTRACT(url, '(&|^)channel_id=([^&]*)', 2) IS NOT NULL
        OR LOWER(channel) IN ('apple', 'google', 'facebook', 'baidu')""",
    "q22": f"""SELECT auction, bidder, price, channel, SPLIT_PART(url, '/', 4) AS dir1, SPLIT_PART(url, '/', 5) AS dir2,
        SPLIT_PART(url, '/', 6) AS dir3 FROM {B}""",
    "q23": f"""SELECT B.auction, A.itemName, A.category, P.name, P.state, B.price FROM {B}, {A}, {P}
        WHERE B.auction = A.id AND A.seller = P.id""",
}
CHANNELS = ("apple", "Google", "facebook", "baidu", "channel-7", "channel-8")


def case(name: str, seed: int, seconds: int = 90, bids: int = 200) -> Case:
    """The query over drawn events, at four boundaries; one bid in ten comes after the boundary that would count it."""
    choice = Random(seed)

    def stamped(*before: object, after: tuple[object, ...] = ()) -> Row:
        ts = START + choice.randrange(seconds * SECOND)
        late = BATCH if choice.random() < 0.1 else 0
        return (*before, ts, *after, ts // BATCH * BATCH + BATCH + late)

    people = [stamped(n % 20, f"name {n % 7}", f"{n}@example.org", "1234", choice.choice(["Salem", "Boise"]),
                      choice.choice(["OR", "ID", "CA", "WA"]), after=("x",)) for n in range(60)]
    auctions = []
    for n in range(120):
        *values, boundary = stamped(n, f"item {n % 9}", "old", choice.randrange(100), choice.randrange(200))
        expires = values[-1] + choice.choice([5, 30, 60]) * SECOND
        auctions.append((*values, expires, choice.randrange(20), choice.choice([10, 11, 12]), "y", boundary))
    all_bids = []
    for _ in range(bids):
        channel = choice.choice(CHANNELS)
        url = f"https://shop.example/a/b{choice.randrange(3)}/item.htm?query=1"
        all_bids.append(stamped(choice.choice([123, *range(40)]), choice.randrange(12), choice.choice([
            choice.randrange(100, 20_000), choice.randrange(10_000, 2_000_000)]), channel, url + choice.choice(
                ["", "&channel_id=77"]), after=(choice.choice(["", "cac", "abccc"]),)))
    side = [(key, f"value {key}") for key in range(0, 40, 3)]
    rows = {"person": people, "auction": auctions, "bid": all_bids}
    streams = {stream: ("dateTime", columns, rows[stream]) for stream, columns in STREAMS.items()}
    boundaries = [START + n * BATCH for n in (2, 5, 8, 10)]
    return Case(BATCH, streams, {"side_input": (SIDE_INPUT, [(0, side)])}, QUERIES[name], boundaries, False)
