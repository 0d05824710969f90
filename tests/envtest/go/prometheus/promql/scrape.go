package main

import (
	"errors"
	"fmt"
	"io"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/textparse"
)

// sample is a value of a series at a time in milliseconds.
type sample struct {
	labels labels.Labels
	time   int64
	value  float64
}

// parseTargets returns the samples of all scrapes, as Prometheus stores them: with the labels of the target, and with
// the series `up` for each scrape.
func parseTargets(asked request) ([]sample, error) {
	var all []sample
	for _, scraped := range asked.Targets {
		for index, text := range scraped.Scrapes {
			before := int64(len(scraped.Scrapes)-1-index) * asked.IntervalSeconds
			at := (asked.EndSeconds - before) * 1000
			up := sample{labels: labelsOf(scraped, labels.FromStrings(labels.MetricName, "up")), time: at}
			if text != "" {
				parsed, err := parseScrape(scraped, text, at)
				if err != nil {
					return nil, fmt.Errorf("scrape %d of %v: %w", index, scraped.Labels, err)
				}
				all = append(all, parsed...)
				up.value = 1
			}
			all = append(all, up)
		}
	}
	return all, nil
}

func parseScrape(scraped target, text string, at int64) ([]sample, error) {
	options := textparse.ParserOptions{}
	parser, err := textparse.New([]byte(text), "text/plain; version=0.0.4", labels.NewSymbolTable(), options)
	if err != nil {
		return nil, err
	}
	var all []sample
	for {
		entry, err := parser.Next()
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return nil, err
		}
		if entry != textparse.EntrySeries {
			continue
		}
		var found labels.Labels
		parser.Labels(&found)
		_, _, value := parser.Series()
		all = append(all, sample{labels: labelsOf(scraped, found), time: at, value: value})
	}
}

// labelsOf adds the labels of the target to those of a series. A label of both belongs to the target, as with
// `honorLabels: false`.
func labelsOf(scraped target, found labels.Labels) labels.Labels {
	builder := labels.NewBuilder(found)
	for name, value := range scraped.Labels {
		if own := found.Get(name); own != "" {
			builder.Set("exported_"+name, own)
		}
		builder.Set(name, value)
	}
	return builder.Labels()
}
