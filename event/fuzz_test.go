package event_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/ballast-lb/ballast/event"
)

func FuzzResourceUsage(f *testing.F) { fuzz(f, "ResourceUsage", `{"usage":1.5,"limit":-1}`) }
func FuzzSystemResourceUsage(f *testing.F) {
	fuzz(f, "SystemResourceUsage", `{"cpu":{"usage":1},"memory":null}`)
}
func FuzzNamespaceBundleStats(f *testing.F) {
	fuzz(f, "NamespaceBundleStats", `{"msgRateIn":1e3,"topics":2}`)
}
func FuzzBrokerLoadData(f *testing.F)       { fuzz(f, "BrokerLoadData", sampleLoad) }
func FuzzBundleLoad(f *testing.F)           { fuzz(f, "BundleLoad", `{"bundleName":"a","stats":null}`) }
func FuzzServiceUnitStateData(f *testing.F) { fuzz(f, "ServiceUnitStateData", sampleState) }
func FuzzBundleData(f *testing.F) {
	fuzz(f, "BundleData", `{"shortTermData":{"maxSamples":10},"topics":3}`)
}
func FuzzTimeAverageBrokerData(f *testing.F) {
	fuzz(f, "TimeAverageBrokerData", `{"longTermMsgRateIn":"NaN"}`)
}
func FuzzTimeAverageMessageData(f *testing.F) { fuzz(f, "TimeAverageMessageData", `{"numSamples":4}`) }
func FuzzResourceQuota(f *testing.F)          { fuzz(f, "ResourceQuota", `{"memory":80.0,"dynamic":false}`) }

func FuzzTopBundlesLoadData(f *testing.F) {
	fuzz(f, "TopBundlesLoadData", `{"topBundlesLoadData":[{"bundleName":"t/n/0x00000000_0x80000000","stats":{"msgRateIn":1.0}}]}`)
}

func FuzzAdvertisedListener(f *testing.F) {
	fuzz(f, "AdvertisedListener", `{"brokerServiceUrl":"pulsar://b:6650"}`)
}

func FuzzBrokerLookupData(f *testing.F) {
	fuzz(f, "BrokerLookupData", `{"brokerId":"b:8080","protocols":{"kafka":null},"advertisedListeners":{"a":{"brokerHttpUrl":"http://b"}}}`)
}

func FuzzLocalBrokerData(f *testing.F) {
	fuzz(f, "LocalBrokerData", sampleFile(f, "modular/load-report-1.json"))
}

func FuzzLoadReport(f *testing.F) { fuzz(f, "LoadReport", sampleFile(f, "simple/load-report-1.json")) }

func FuzzKindOfReport(f *testing.F) {
	for _, seed := range append(hostile, `{"underLoaded":null}`, `{"loadReportType":"LoadReport"}`) {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, document []byte) {
		_, err := event.KindOfReport(document)
		if err == nil && !json.Valid(document) {
			t.Errorf("%q was read, but it is not JSON", document)
		}
	})
}

// hostile are documents with which decoders of JSON have trouble.
var hostile = []string{
	``, `null`, `{}`, `[]`, `{"`, `{"a":`, `{"cpu":{"usage":"-Infinity"}}`, `{"cpu":null,"cpu":{}}`, `{"topics":-0}`, `{"topics":1e19}`,
	`{"a":[[[[{"b":[]}]]]],"c":"\ud800"}`, "{\"a\":\"\xff\"}", `{"state":"Free","dstBroker":"","splitServiceUnitToDestBroker":{}}`,
	`{"lastStats":{"a":null,"a":{}},"bundles":["x","x"]}`, `{"topBundlesLoadData":null}`, `{"usage":1.7976931348623159e308}`, `{"limit":4.9E-324}`,
}

// fuzz requires that a decoder refuses a document with an *event.Error or reads a JSON document, and that what it reads is
// encoded to JSON that is read again. From then on nothing changes any more: only a null may come back as a default, once.
func fuzz(f *testing.F, document, seed string) {
	f.Add([]byte(seed))
	for _, seed := range hostile {
		f.Add([]byte(seed))
	}
	again := codecs[document]
	f.Fuzz(func(t *testing.T, text []byte) {
		first, err := again(text)
		if err != nil {
			var refused *event.Error
			if !errors.As(err, &refused) && document != "LocalBrokerData" { // one that is read may still be impossible to write
				t.Fatalf("error is %v, want an *event.Error", err)
			}
			if err.Error() == "" {
				t.Fatal("an error without words")
			}
			return
		}
		if !json.Valid(text) {
			t.Errorf("%q was read, but it is not JSON", text)
		}
		second, err := again(first)
		if err != nil {
			t.Fatalf("%q is encoded as %s, which is refused: %v", text, first, err)
		}
		third, err := again(second)
		if err != nil || !bytes.Equal(second, third) {
			t.Errorf("%q is encoded as %s, then as %s, then as %s (%v)", text, first, second, third, err)
		}
	})
}

func sampleFile(f *testing.F, name string) string {
	f.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "samples", name))
	if err != nil {
		f.Fatal(err)
	}
	return string(text)
}
