package event_test

import (
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/ballast-lb/ballast/event"
	"github.com/google/go-cmp/cmp"
)

// TestRefused decodes what is no document of the kind: the error names the field, the value and what would be right.
func TestRefused(t *testing.T) {
	for _, test := range []struct {
		name, document, text string
		want                 event.Error
	}{
		{"empty", "BrokerLoadData", ``, event.Error{Value: "nothing", Want: "an object"}},
		{"spaces", "BrokerLoadData", "  \n", event.Error{Value: `"  \n"`, Want: "an object"}},
		{"null", "BrokerLoadData", `null`, event.Error{Value: `"null"`, Want: "an object"}},
		{"list", "BrokerLoadData", `[1]`, event.Error{Value: `"[1]"`, Want: "an object"}},
		{"number", "BrokerLoadData", ` 12`, event.Error{Value: `"12"`, Want: "an object", Offset: 1}},
		{"text", "ServiceUnitStateData", `hello`, event.Error{Value: `"hello"`, Want: "an object"}},
		{"binary", "BrokerLoadData", "\x00\xff\xfe", event.Error{Value: `"\x00\xff\xfe"`, Want: "UTF-8"}},
		{"torn", "BrokerLoadData", `{"topics":1`, event.Error{Value: "nothing", Want: "a comma or the end of the object", Offset: 11}},
		{"torn string", "BrokerLoadData", `{"top`, event.Error{Value: `"\"top"`, Want: "a string that ends", Offset: 1}},
		{"two documents", "BrokerLoadData", `{}{}`, event.Error{Value: `"{}"`, Want: "the end of the document", Offset: 2}},
		{"trailing comma", "BrokerLoadData", `{"topics":1,}`, event.Error{Value: `"}"`, Want: "a member's name in quotes", Offset: 12}},
		{"no colon", "BrokerLoadData", `{"topics" 1}`, event.Error{Value: `"1}"`, Want: "a colon after a member's name", Offset: 10}},
		{"string for an int", "BrokerLoadData", `{"topics":"12"}`,
			event.Error{Field: "topics", Value: `"\"12\"}"`, Want: "a whole number of 64 bits", Offset: 10}},
		{"fraction for an int", "BrokerLoadData", `{"bundleCount":3.7}`,
			event.Error{Field: "bundleCount", Value: `"3.7}"`, Want: "a whole number of 64 bits", Offset: 15}},
		{"too large an int", "BrokerLoadData", `{"topics":9223372036854775808}`,
			event.Error{Field: "topics", Value: `"9223372036854775808}"`, Want: "a whole number of 64 bits", Offset: 10}},
		{"flag for a double", "BrokerLoadData", `{"cpu":{"usage":true}}`,
			event.Error{Field: "cpu.usage", Value: `"true}}"`, Want: `a number, "NaN", "Infinity" or "-Infinity"`, Offset: 16}},
		{"word for a double", "BrokerLoadData", `{"cpu":{"limit":"much"}}`,
			event.Error{Field: "cpu.limit", Value: `"\"much\"}}"`, Want: `a number, "NaN", "Infinity" or "-Infinity"`, Offset: 16}},
		{"bare NaN", "BrokerLoadData", `{"weightedMaxEMA":NaN}`,
			event.Error{Field: "weightedMaxEMA", Value: `"NaN}"`, Want: `a number, "NaN", "Infinity" or "-Infinity"`, Offset: 18}},
		{"leading zero", "BrokerLoadData", `{"topics":012}`,
			event.Error{Field: "topics", Value: `"012}"`, Want: "a whole number of 64 bits", Offset: 10}},
		{"number for a resource", "BrokerLoadData", `{"memory":5}`,
			event.Error{Field: "memory", Value: `"5}"`, Want: "an object", Offset: 10}},
		{"bundle", "TopBundlesLoadData", `{"topBundlesLoadData":[{},{"stats":{"topics":[]}}]}`,
			event.Error{Field: "topBundlesLoadData[1].stats.topics", Value: `"[]}}]}"`, Want: "a whole number of 64 bits", Offset: 45}},
		{"null bundle", "TopBundlesLoadData", `{"topBundlesLoadData":[null]}`,
			event.Error{Field: "topBundlesLoadData[0]", Value: `"null]}"`, Want: "an object", Offset: 23}},
		{"too large a count", "TopBundlesLoadData", `{"topBundlesLoadData":[{"stats":{"consumerCount":2147483648}}]}`,
			event.Error{Field: "topBundlesLoadData[0].stats.consumerCount", Value: `"2147483648}}]}"`, Want: "a whole number of 32 bits", Offset: 49}},
		{"state", "ServiceUnitStateData", `{"state":1,"dstBroker":"b"}`,
			event.Error{Field: "state", Value: `"1,\"dstBroker\":\"b\"}"`, Want: "the name of a state", Offset: 9}},
		{"broker", "ServiceUnitStateData", `{"dstBroker":5}`,
			event.Error{Field: "dstBroker", Value: `"5}"`, Want: "a broker id", Offset: 13}},
		{"force", "ServiceUnitStateData", `{"force":"true"}`,
			event.Error{Field: "force", Value: `"\"true\"}"`, Want: "true or false", Offset: 9}},
		{"control character", "ServiceUnitStateData", "{\"state\":\"a\nb\"}",
			event.Error{Field: "state", Value: `"\nb\"}"`, Want: "allowed in a string without an escape", Offset: 11}},
		{"escape", "ServiceUnitStateData", `{"state":"a\x"}`,
			event.Error{Field: "state", Value: `"\\x\"}"`, Want: "an escape of JSON", Offset: 11}},
		{"stats that are null", "LoadReport", `{"bundleStats":{"t/n/0x0_0x1":null}}`,
			event.Error{Field: "bundleStats.t/n/0x0_0x1", Value: `"null}}"`, Want: "an object", Offset: 30}},
		{"unknown member that is no JSON", "BrokerLoadData", `{"future":{"a":[1,2,tru]}}`,
			event.Error{Field: "future.a[2]", Value: `"tru]}}"`, Want: "true or false", Offset: 20}},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := codecs[test.document]([]byte(test.text))
			var got *event.Error
			if !errors.As(err, &got) {
				t.Fatalf("error is %v, want an *event.Error", err)
			}
			test.want.Document = test.document
			if diff := cmp.Diff(&test.want, got); diff != "" {
				t.Errorf("error differs (-want +got):\n%s", diff)
			}
		})
	}
}

func TestErrorText(t *testing.T) {
	_, err := event.Decode[event.BrokerLoadData]([]byte(`{"cpu":{"usage":"much"}}`))
	want := `BrokerLoadData: field cpu.usage: "\"much\"}}" (at byte 16) is not a number, "NaN", "Infinity" or "-Infinity"`
	if err == nil || err.Error() != want {
		t.Errorf("error is\n%v, want\n%s", err, want)
	}
}

// TestHuge decodes documents that are too large or too deep.
func TestHuge(t *testing.T) {
	large := append([]byte(`{"future":"`), make([]byte, event.MaxPayload)...)
	if _, err := event.Decode[event.BrokerLoadData](large); err == nil || !strings.Contains(err.Error(), "the limit is 33554432 bytes") {
		t.Errorf("large document: %v", err)
	}
	deep := `{"future":` + strings.Repeat(`[`, 2000) + strings.Repeat(`]`, 2000) + `}`
	if _, err := event.Decode[event.BrokerLoadData]([]byte(deep)); err == nil || !strings.Contains(err.Error(), "nested less than 1000 deep") {
		t.Errorf("deep document: %.200v", err)
	}
	allowed := `{"future":` + strings.Repeat(`[`, 999) + strings.Repeat(`]`, 999) + `}`
	if _, err := event.Decode[event.BrokerLoadData]([]byte(allowed)); err != nil {
		t.Errorf("document that is as deep as allowed: %.200v", err)
	}
	many := `{"lastStats":{` + strings.Repeat(`"a":{"topics":1},"b":{},`, 20000) + `"c":{}}}`
	report, err := event.Decode[event.LocalBrokerData]([]byte(many))
	if err != nil || len(report.LastStats) != 3 {
		t.Errorf("repeated keys: %d entries, %v", len(report.LastStats), err)
	}
}

// TestLenient decodes what Pulsar reads, too, though it never writes it so.
func TestLenient(t *testing.T) {
	unknown := event.ResourceUsage{}
	for _, test := range []struct {
		name, text string
		want       func(*event.BrokerLoadData)
	}{
		{"nothing", ` { } `, func(*event.BrokerLoadData) {}},
		{"a null number is zero", `{"maxResourceUsage":null,"topics":null}`, func(d *event.BrokerLoadData) { d.MaxResourceUsage = 0 }},
		{"a null resource", `{"cpu":null}`, func(d *event.BrokerLoadData) { d.NullResources = event.ResourceSet(0).With(event.CPU) }},
		{"null inside a resource", `{"cpu":{"usage":null,"limit":null}}`, func(d *event.BrokerLoadData) { d.CPU = unknown }},
		{"the last of two counts", `{"cpu":null,"cpu":{"usage":1},"topics":1,"topics":2}`, func(d *event.BrokerLoadData) { d.CPU.Usage, d.Topics = 1, 2 }},
		{"escaped names", `{"top\u0069cs":7}`, func(d *event.BrokerLoadData) { d.Topics = 7 }},
		{"whole numbers in other forms", `{"bundleCount":1e3,"topics":12.0}`, func(d *event.BrokerLoadData) { d.BundleCount, d.Topics = 1000, 12 }},
		{"64 bits", `{"updatedAt":9223372036854775807,"reportedAt":-9223372036854775808}`,
			func(d *event.BrokerLoadData) { d.UpdatedAt, d.ReportedAt = math.MaxInt64, math.MinInt64 }},
		{"out of a double's range", `{"msgRateIn":1e400,"msgRateOut":-1e400,"msgThroughputIn":1e-400}`,
			func(d *event.BrokerLoadData) { d.MsgRateIn, d.MsgRateOut = math.Inf(1), math.Inf(-1) }},
		{"unknown members of all kinds", `{"a":[1,{"b":null}],"c":"\ud83d\ude00","d":-0.5E-3,"e":true,"topics":3}`,
			func(d *event.BrokerLoadData) { d.Topics = 3 }},
	} {
		t.Run(test.name, func(t *testing.T) {
			want := event.NewBrokerLoadData()
			test.want(&want)
			got, err := event.Decode[event.BrokerLoadData]([]byte(test.text))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("differs (-want +got):\n%s", diff)
			}
		})
	}
}

// TestDefaults encodes what constructors make and what an empty document is read as.
func TestDefaults(t *testing.T) {
	for _, test := range []struct {
		document string
		made     json.Marshaler
		read     bool // an empty document is read as that, too
	}{
		{"BrokerLoadData", event.NewBrokerLoadData(), true},
		{"TopBundlesLoadData", event.NewTopBundlesLoadData(), true},
		{"LocalBrokerData", event.NewLocalBrokerData(0), true},
		{"LoadReport", event.NewLoadReport(), true},
		{"ResourceQuota", event.NewResourceQuota(), true},
		{"SystemResourceUsage", event.NewSystemResourceUsage(), true},
		{"ResourceQuota", event.DefaultResourceQuota(), false},
	} {
		t.Run(test.document, func(t *testing.T) {
			made, err := test.made.MarshalJSON()
			if err != nil {
				t.Fatal(err)
			}
			text := made
			if test.read {
				text = []byte(`{}`)
			}
			read, err := codecs[test.document](text)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(made), string(read)); diff != "" {
				t.Errorf("made and read differ (-made +read):\n%s", diff)
			}
		})
	}
}

// TestStrings decodes and encodes strings with everything that needs an escape.
func TestStrings(t *testing.T) {
	for _, s := range []string{"plain", `"\/`, "\b\f\n\r\t\x00\x1f", "é€😀", "a\u2028b", "\x7f"} {
		d := event.ServiceUnitStateData{State: event.Owned, DstBroker: s, VersionID: 1}
		text, err := d.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		if !json.Valid(text) {
			t.Errorf("%q is encoded as %s, which is not JSON", s, text)
		}
		got, err := event.Decode[event.ServiceUnitStateData](text)
		if err != nil || got.DstBroker != s {
			t.Errorf("%q is read again as %q, %v", s, got.DstBroker, err)
		}
	}
	for text, want := range map[string]string{
		`"\u00e9\u20AC\ud83d\ude00"`: "é€😀", `"\ud83dx"`: "\uFFFDx", `"\ude00"`: "\uFFFD", `"\ud83d\ud83d"`: "\uFFFD\uFFFD", `"\/"`: "/",
	} {
		got, err := event.Decode[event.ServiceUnitStateData]([]byte(`{"state":"Owned","dstBroker":` + text + `}`))
		if err != nil || got.DstBroker != want {
			t.Errorf("%s is read as %q, %v, want %q", text, got.DstBroker, err, want)
		}
	}
}

// TestRecords decodes ownership records that only Pulsar's constructor refuses, and such that it lets through.
func TestRecords(t *testing.T) {
	for text, refused := range map[string]string{
		`{"state":"Owned"}`: "dstBroker and sourceBroker are both blank",
		`{"state":"Owned","dstBroker":" ","sourceBroker":""}`: "dstBroker and sourceBroker are both blank",
		`{"dstBroker":"b"}`:                                       "state is missing or unknown",
		`{"state":null,"dstBroker":"b"}`:                          "state is missing or unknown",
		`{"state":"owned","dstBroker":"b"}`:                       "state is missing or unknown",
		`{"state":"Free"}`:                                        "",
		`{"state":"Owned","sourceBroker":"b"}`:                    "",
		`{"state":"Owned","dstBroker":"b","dstBroker":null}`:      "dstBroker and sourceBroker are both blank",
		`{"state":"Splitting","sourceBroker":"b","versionId":-1}`: "",
	} {
		_, err := event.Decode[event.ServiceUnitStateData]([]byte(text))
		switch {
		case refused == "" && err != nil:
			t.Errorf("%s is refused: %v", text, err)
		case refused != "" && (err == nil || !strings.Contains(err.Error(), refused)):
			t.Errorf("%s: error is %v, want one about %q", text, err, refused)
		}
	}
	if _, err := (event.ServiceUnitStateData{State: event.Owned}).MarshalJSON(); err == nil {
		t.Error("an invalid record was encoded")
	}
}

// TestSplitDestinations keeps children in order and null brokers null.
func TestSplitDestinations(t *testing.T) {
	const text = `{"state":"Splitting","sourceBroker":"b","splitServiceUnitToDestBroker":{"0x8_0x9":null,"0x1_0x8":"c","0x8_0x9":"d"}}`
	got, err := event.Decode[event.ServiceUnitStateData]([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	want := []event.SplitDestination{{Range: "0x8_0x9", Broker: "d"}, {Range: "0x1_0x8", Broker: "c"}}
	if diff := cmp.Diff(want, got.SplitServiceUnitToDestBroker); diff != "" {
		t.Errorf("differs (-want +got):\n%s", diff)
	}
}
