"""A new kind of result: how many answered what, with a table, a picture, a sheet and a warning."""

import mpc_rr


class Bare(mpc_rr.Message, frozen=True):
    """Party → coordinator, public: its answer as it is."""

    step, doing = "bare_answer", "parties say what they answered"
    code: int


class Counted(mpc_rr.Message, frozen=True):
    """Coordinator → everyone: how often each answer was given."""

    step, way, doing = "headcounts", "announce", "the coordinator announces the counts"
    counts: tuple[int, ...]


class Headcounts(mpc_rr.Ending, frozen=True):
    attribute: str
    counts: tuple[int, ...]

    def publish(self, study):
        draft, attribute = mpc_rr.Draft(), study.schema.attribute(self.attribute)
        n = sum(self.counts)
        draft.find(f"{n} heads were counted.", counted=n)
        axis = mpc_rr.Axis(attribute=attribute.name, categories=attribute.categories)
        shares = tuple(count / n for count in self.counts)
        draft.tables.append(
            mpc_rr.Table(name="heads", axes=(axis,), kind="share", values=shares, n=n, main=True)
        )
        draft.figures.append(mpc_rr.Figure(kind="intervals", of="heads"))
        lines = [f"{c},{k}\n" for c, k in zip(attribute.categories, self.counts, strict=True)]
        text = "answer,heads\n" + "".join(lines)
        draft.sheets.append(mpc_rr.Sheet.of("heads.csv", "how many answered what", text))
        draft.warn("every answer was told to everybody.")
        with draft.part("the impossible part"):
            raise ArithmeticError("it is impossible")
        return draft.publication()


class Headcount(mpc_rr.StudyProtocol, frozen=True, tag="headcount"):
    messages = (Bare,)
    of: str

    def disclosures(self, study):
        return [mpc_rr.Told(what="told to everybody", attributes=(self.of,))]

    async def party(self, session, schema, record):
        await session.report(Bare(record[schema.names.index(self.of)]))
        return Headcounts(self.of, (await session.hear(Counted)).counts)

    async def coordinator(self, session, schema):
        gathered = await session.gather(Bare)
        codes = [message.code for message in gathered.messages.values()]
        size = schema.attribute(self.of).size
        counted = Counted(tuple(codes.count(code) for code in range(size)))
        await session.announce(counted)
        return Headcounts(self.of, counted.counts)
