package pulsar

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ballast-lb/ballast/topics"
)

func at(ledger, entry int64, batch ...int32) position {
	p := position{ledger: ledger, entry: entry, size: 1}
	if len(batch) == 2 {
		p.index, p.size = batch[0], batch[1]
	}
	return p
}

func TestPlace(t *testing.T) {
	for _, test := range []struct {
		pos, id position
		want    place
	}{
		{at(5, 3), at(5, 4), follows},
		{at(5, 3), at(5, 3), duplicate},
		{at(5, 3), at(5, 2), duplicate},
		{at(5, 3), at(4, 9), duplicate},
		{at(5, 3), at(5, 5), gap},
		{at(5, 3), at(6, 0), gap}, // ledger 5 may have more
		{at(5, 3), at(5, 4, 0, 3), follows},
		{at(5, 3), at(5, 4, 1, 3), gap},
		{at(5, 3, 0, 3), at(5, 3, 1, 3), follows},
		{at(5, 3, 0, 3), at(5, 3, 2, 3), gap},
		{at(5, 3, 1, 3), at(5, 4), gap}, // the batch has one more
		{at(5, 3, 2, 3), at(5, 4), follows},
		{at(5, 3, 2, 3), at(5, 3, 1, 3), duplicate},
		{at(5, -1), at(5, 0), follows},
		{before, at(0, 0), gap},
	} {
		if got := (&tracker{pos: test.pos}).place(test.id); got != test.want {
			t.Errorf("%v after %v: %d, want %d", test.id, test.pos, got, test.want)
		}
	}
}

func TestMissing(t *testing.T) {
	l := layout{ledgers: []ledger{{5, 10}, {7, 3}, {8, 0}, {9, 4}}}
	for name, test := range map[string]struct {
		pos, horizon, id position
		inclusive        bool
		layout           layout
		want             absence
		after            position // pos afterwards, if it changes
	}{
		"same ledger":       {pos: at(5, 3), id: at(5, 7), want: absence{spans: []span{{5, 4, 6}}}},
		"inclusive":         {pos: at(5, 3), id: at(5, 7), inclusive: true, want: absence{spans: []span{{5, 4, 7}}}},
		"rest of a batch":   {pos: at(5, 3, 0, 2), id: at(5, 4), want: absence{spans: []span{{5, 3, 3}}}},
		"begin of a batch":  {pos: at(5, 3), id: at(5, 4, 1, 2), want: absence{spans: []span{{5, 4, 4}}}},
		"middle of a batch": {pos: at(5, 3, 0, 3), id: at(5, 3, 2, 3), want: absence{spans: []span{{5, 3, 3}}}},
		"across":            {pos: at(5, 8), id: at(9, 2), layout: l, want: absence{spans: []span{{5, 9, 9}, {7, 0, 2}, {9, 0, 1}}}},
		"nothing across":    {pos: at(5, 9), id: at(7, 0), layout: l},
		"from the start":    {pos: before, id: at(7, 1), layout: l, want: absence{spans: []span{{5, 0, 9}, {7, 0, 0}}}, after: at(5, -1)},
		"compacted":         {pos: before, horizon: at(7, 0), id: at(9, 1), layout: l, want: absence{spans: []span{{7, 1, 2}, {9, 0, 0}}}, after: at(5, -1)},
		"in the compacted":  {pos: at(5, 3), horizon: at(7, 0), id: at(5, 7), want: absence{}},
		"deleted":           {pos: at(4, 3), id: at(7, 0), layout: l, want: absence{spans: []span{{5, 0, 9}}, uncertain: true}, after: at(5, -1)},
		"known deleted":     {pos: at(2, 3), id: at(5, 1), layout: l, want: absence{spans: []span{{5, 0, 0}}, lost: 6 + 2}, after: at(5, -1)},
		"all deleted":       {pos: at(2, 9), id: at(5, 0), layout: l, want: absence{lost: 2}, after: at(5, -1)},
		"compacted away":    {pos: at(4, 3), horizon: at(5, 1), id: at(5, 4), layout: l, want: absence{spans: []span{{5, 2, 3}}}, after: at(5, -1)},
	} {
		t.Run(name, func(t *testing.T) {
			tr := &tracker{pos: test.pos, horizon: test.horizon, closed: map[int64]closedLedger{2: {10, 3}, 3: {2, 5}}}
			if test.horizon == (position{}) {
				tr.horizon = before
			}
			got := tr.missing(test.id, test.inclusive, test.layout)
			if diff := cmp.Diff(test.want, got, cmp.AllowUnexported(absence{}, span{})); diff != "" {
				t.Errorf("absence (-want +got):\n%s", diff)
			}
			after := test.after
			if after == (position{}) {
				after = test.pos
			}
			if tr.pos != after {
				t.Errorf("position afterwards %v, want %v", tr.pos, after)
			}
		})
	}
}

func TestBegin(t *testing.T) {
	l := layout{ledgers: []ledger{{5, 10}, {7, 3}, {9, 0}}, horizon: at(4, 8)}
	for name, test := range map[string]struct {
		options topics.SubscribeOptions
		layout  layout
		pos     position
		horizon position
	}{
		"earliest":            {topics.SubscribeOptions{From: topics.Earliest}, l, at(5, -1), before},
		"latest":              {topics.SubscribeOptions{}, l, at(7, 2), before},
		"compacted":           {topics.SubscribeOptions{From: topics.Earliest, Compacted: true}, l, before, at(4, 8)},
		"never compacted":     {topics.SubscribeOptions{From: topics.Earliest, Compacted: true}, layout{ledgers: l.ledgers, horizon: before}, at(5, -1), before},
		"no topic":            {topics.SubscribeOptions{From: topics.Earliest}, layout{}, before, position{}},
		"latest of no topic":  {topics.SubscribeOptions{}, layout{}, before, position{}},
		"latest of an empty":  {topics.SubscribeOptions{}, layout{ledgers: []ledger{{9, 0}}}, at(9, -1), before},
		"latest of compacted": {topics.SubscribeOptions{Compacted: true}, l, at(7, 2), at(4, 8)},
	} {
		t.Run(name, func(t *testing.T) {
			var tr tracker
			tr.begin(test.layout, test.options)
			if test.horizon == (position{}) {
				test.horizon = before
			}
			if tr.pos != test.pos || tr.horizon != test.horizon {
				t.Errorf("begins at %v, horizon %v, want %v, %v", tr.pos, tr.horizon, test.pos, test.horizon)
			}
		})
	}
}

func TestTake(t *testing.T) {
	spans := []span{{1, 0, 4}, {2, 0, 0}, {3, 5, 9}}
	for n, want := range map[int64][][]span{
		0:  {nil, spans},
		3:  {{{1, 0, 2}}, {{1, 3, 4}, {2, 0, 0}, {3, 5, 9}}},
		5:  {{{1, 0, 4}}, {{2, 0, 0}, {3, 5, 9}}},
		8:  {{{1, 0, 4}, {2, 0, 0}, {3, 5, 6}}, {{3, 7, 9}}},
		11: {spans, nil},
		99: {spans, nil},
	} {
		first, rest := take(spans, n)
		if diff := cmp.Diff(want, [][]span{first, rest}, cmp.AllowUnexported(span{})); diff != "" {
			t.Errorf("take %d (-want +got):\n%s", n, diff)
		}
		if count(first)+count(rest) != count(spans) {
			t.Errorf("take %d: %d and %d of %d", n, count(first), count(rest), count(spans))
		}
	}
}
