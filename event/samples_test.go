package event_test

import (
	"bufio"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ballast-lb/ballast/event"
	"github.com/ballast-lb/ballast/internal/jsondiff"
)

// codec decodes one document and encodes it again.
type codec func(document []byte) ([]byte, error)

func codecOf[T any, P interface {
	*T
	json.Unmarshaler
}]() codec {
	return func(document []byte) ([]byte, error) {
		v, err := event.Decode[T, P](document)
		if err != nil {
			return nil, err
		}
		return json.Marshal(v)
	}
}

// codecs are all documents that travel.
var codecs = map[string]codec{
	"ResourceUsage":          codecOf[event.ResourceUsage](),
	"SystemResourceUsage":    codecOf[event.SystemResourceUsage](),
	"NamespaceBundleStats":   codecOf[event.NamespaceBundleStats](),
	"BrokerLoadData":         codecOf[event.BrokerLoadData](),
	"BundleLoad":             codecOf[event.BundleLoad](),
	"TopBundlesLoadData":     codecOf[event.TopBundlesLoadData](),
	"ServiceUnitStateData":   codecOf[event.ServiceUnitStateData](),
	"AdvertisedListener":     codecOf[event.AdvertisedListener](),
	"BrokerLookupData":       codecOf[event.BrokerLookupData](),
	"LocalBrokerData":        codecOf[event.LocalBrokerData](),
	"TimeAverageMessageData": codecOf[event.TimeAverageMessageData](),
	"BundleData":             codecOf[event.BundleData](),
	"TimeAverageBrokerData":  codecOf[event.TimeAverageBrokerData](),
	"ResourceQuota":          codecOf[event.ResourceQuota](),
	"LoadReport":             codecOf[event.LoadReport](),
}

// TestSampleMessages decodes and encodes every message that real clusters put onto the system topics.
func TestSampleMessages(t *testing.T) {
	byTopic := map[string]string{
		"loadbalancer-broker-load-data":      "BrokerLoadData",
		"loadbalancer-top-bundles-load-data": "TopBundlesLoadData",
		"loadbalancer-service-unit-state":    "ServiceUnitStateData",
	}
	for _, file := range sampleFiles(t, "*-load-data.jsonl", "*-service-unit-state.jsonl") {
		t.Run(file, func(t *testing.T) {
			values := 0
			for n, line := range lines(t, file) {
				var message struct {
					Topic   string
					Payload json.RawMessage
					Len     int `json:"payloadLen"`
				}
				mustDecode(t, line, &message)
				if message.Len == 0 {
					continue // a tombstone
				}
				values++
				sameAgain(t, n, byTopic[message.Topic[strings.LastIndex(message.Topic, "/")+1:]], message.Payload)
			}
			if values == 0 {
				t.Error("no messages")
			}
		})
	}
}

// TestSampleStore decodes and encodes what real clusters keep in the metadata store.
func TestSampleStore(t *testing.T) {
	brokers := map[string]string{"extensible": "BrokerLookupData", "modular": "LocalBrokerData", "simple": "LoadReport"}
	for _, file := range sampleFiles(t, "metadata-store*.jsonl") {
		t.Run(file, func(t *testing.T) {
			values := 0
			for n, line := range lines(t, file) {
				var node struct {
					Path string
					Data json.RawMessage
				}
				mustDecode(t, line, &node)
				document := ""
				switch {
				case len(node.Data) == 0:
				case strings.HasPrefix(node.Path, "/loadbalance/brokers/"):
					document = brokers[filepath.Base(filepath.Dir(file))]
				case strings.HasPrefix(node.Path, "/loadbalance/bundle-data/"):
					document = "BundleData"
				case strings.HasPrefix(node.Path, "/loadbalance/broker-time-average/"):
					document = "TimeAverageBrokerData"
				case strings.HasPrefix(node.Path, "/loadbalance/resource-quota/"):
					document = "ResourceQuota"
				}
				if document != "" {
					values++
					sameAgain(t, n, document, node.Data)
				}
			}
			if values == 0 {
				t.Error("no documents")
			}
		})
	}
}

// TestSampleReports decodes and encodes load reports as brokers answer them.
func TestSampleReports(t *testing.T) {
	kinds := map[string]event.ReportKind{"modular": event.ModularReport, "simple": event.SimpleReport}
	for _, file := range sampleFiles(t, "load-report-?.json") {
		t.Run(file, func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			kind, err := event.KindOfReport(text)
			if want := kinds[filepath.Base(filepath.Dir(file))]; err != nil || kind != want {
				t.Fatalf("read as %s, %v, want %s", kind, err, want)
			}
			sameAgain(t, 1, kind.String(), text)
		})
	}
}

// sameAgain requires that a document is encoded to the JSON value that was decoded. Members that are null count as absent, as
// they do for Pulsar, which never writes them; some records here were written by hand.
func sameAgain(t *testing.T, line int, document string, text []byte) {
	t.Helper()
	again, ok := codecs[document]
	if !ok {
		t.Fatalf("line %d: no document %q", line, document)
	}
	got, err := again(text)
	if err != nil {
		t.Fatalf("line %d: %v", line, err)
	}
	if diff := jsondiff.Diff(withoutNulls(t, text), got); diff != "" {
		t.Errorf("line %d differs after decoding and encoding:\n%s", line, diff)
	}
}

func withoutNulls(t *testing.T, document []byte) json.RawMessage {
	t.Helper()
	var members map[string]json.RawMessage
	mustDecode(t, document, &members)
	for key, value := range members {
		if string(value) == "null" {
			delete(members, key)
		}
	}
	text, err := json.Marshal(members)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func sampleFiles(t *testing.T, patterns ...string) []string {
	t.Helper()
	var files []string
	for _, pattern := range patterns {
		found, err := filepath.Glob(filepath.Join("testdata", "samples", "*", pattern))
		if err != nil || len(found) == 0 {
			t.Fatalf("no samples %s: %v", pattern, err)
		}
		files = append(files, found...)
	}
	return files
}

// lines are the lines of a file by their number.
func lines(t *testing.T, file string) map[int][]byte {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	all := make(map[int][]byte)
	sc := bufio.NewScanner(f)
	sc.Buffer(nil, 1<<20)
	for n := 1; sc.Scan(); n++ {
		all[n] = []byte(sc.Text())
	}
	if err := sc.Err(); err != nil {
		t.Fatal(err)
	}
	return all
}

func mustDecode(t *testing.T, text []byte, into any) {
	t.Helper()
	if err := json.Unmarshal(text, into); err != nil {
		t.Fatal(err)
	}
}
