package main

import (
	"fmt"
	"strings"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
)

// catalogue is the recorded series by metric name.
type catalogue map[string][]labels.Labels

func newCatalogue(samples []sample) catalogue {
	known := catalogue{}
	for _, one := range samples {
		name := one.labels.Get(labels.MetricName)
		known[name] = append(known[name], one.labels)
	}
	return known
}

// check returns the selectors of a query that select nothing, and the labels that it groups or joins by and that no
// series has. Regular expressions and negations are checked by the name of their label only: they often name
// errors, which a recording need not contain.
func (known catalogue) check(query string) ([]string, error) {
	expr, err := parser.NewParser(parser.Options{}).ParseExpr(query)
	if err != nil {
		return nil, err
	}
	problems := []string{}
	parser.Inspect(expr, func(node parser.Node, _ []parser.Node) error {
		switch node := node.(type) {
		case *parser.VectorSelector:
			problems = append(problems, known.checkSelector(node)...)
		case *parser.AggregateExpr:
			if !node.Without {
				problems = append(problems, known.checkLabels(node.Grouping, node.Expr)...)
			}
		case *parser.BinaryExpr:
			if node.VectorMatching != nil && node.VectorMatching.On {
				for _, side := range []parser.Expr{node.LHS, node.RHS} {
					problems = append(problems, known.checkLabels(node.VectorMatching.MatchingLabels, side)...)
				}
			}
		}
		return nil
	})
	return problems, nil
}

func (known catalogue) checkSelector(selector *parser.VectorSelector) []string {
	matching := known.selected(selector)
	if len(matching) > 0 {
		return nil
	}
	return []string{fmt.Sprintf("no recorded series matches %s", selector.String())}
}

// selected returns the series of the metric that have the label of every matcher, and the value of every equality.
func (known catalogue) selected(selector *parser.VectorSelector) []labels.Labels {
	var matching []labels.Labels
	for _, found := range known[selector.Name] {
		if isSelected(selector, found) {
			matching = append(matching, found)
		}
	}
	return matching
}

func isSelected(selector *parser.VectorSelector, found labels.Labels) bool {
	for _, matcher := range selector.LabelMatchers {
		if !found.Has(matcher.Name) {
			return false
		}
		if matcher.Type == labels.MatchEqual && !matcher.Matches(found.Get(matcher.Name)) {
			return false
		}
	}
	return true
}

// checkLabels returns the labels that no series selected within an expression has.
func (known catalogue) checkLabels(names []string, within parser.Expr) []string {
	var problems []string
	for _, name := range names {
		has := false
		parser.Inspect(within, func(node parser.Node, _ []parser.Node) error {
			if selector, ok := node.(*parser.VectorSelector); ok {
				for _, found := range known.selected(selector) {
					has = has || found.Has(name)
				}
			}
			return nil
		})
		// A label that a function of PromQL has set is not in the recording.
		if !has && !strings.Contains(within.String(), "label_replace") {
			problems = append(problems, fmt.Sprintf("no series of %s has the label %s", within.String(), name))
		}
	}
	return problems
}

// checkSeries returns a problem if no recorded series of the metric has all the labels of this one, whatever their
// values.
func (known catalogue) checkSeries(series string) []string {
	matchers, err := parser.NewParser(parser.Options{}).ParseMetricSelector(series)
	if err != nil {
		return []string{err.Error()}
	}
	var metric string
	for _, matcher := range matchers {
		if matcher.Name == labels.MetricName {
			metric = matcher.Value
		}
	}
	for _, found := range known[metric] {
		hasAll := true
		for _, matcher := range matchers {
			hasAll = hasAll && found.Has(matcher.Name)
		}
		if hasAll {
			return nil
		}
	}
	return []string{fmt.Sprintf("no recorded series has the labels of %s", series)}
}
