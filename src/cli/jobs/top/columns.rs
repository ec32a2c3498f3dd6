//! Lines of cells below each other, and curves of metrics.

use ratatui::{
    buffer::Buffer,
    layout::{Constraint, Layout, Rect},
    style::{Style, Stylize},
    text::Line,
    widgets::{Sparkline, Widget},
};
use sojourn_protocol::quantity::to_u64;
use std::ops::Range;

/// Heights of a curve's cell, but the lowest: shares of the way from the lowest value to the highest.
const HEIGHTS: [f64; 7] = [0.125, 0.25, 0.375, 0.5, 0.625, 0.75, 0.875];
/// The height of a full cell.
const FULL: u64 = 8;

/// A cell of a line.
pub(super) enum Cell {
    Text(Line<'static>),
    /// A metric after each epoch.
    Curve(Vec<Option<f64>>),
}

impl From<String> for Cell {
    fn from(text: String) -> Self {
        Self::Text(text.into())
    }
}

/// A number, which ends where its column does.
pub(super) fn number(text: String) -> Cell {
    Cell::Text(Line::from(text).right_aligned())
}

/// Where lines are drawn, one after the other.
pub(super) struct Columns {
    columns: Vec<Rect>,
    area: Rect,
}

impl Columns {
    pub(super) fn new(widths: &[Constraint], area: Rect) -> Self {
        let top = Rect { height: area.height.min(1), ..area };
        Self { columns: Layout::horizontal(widths).spacing(1).split(top).to_vec(), area }
    }

    /// Lines that there is still room for.
    pub(super) fn room(&self) -> usize {
        usize::from(self.area.height)
    }

    /// Draws the names of the columns; those of numbers are right-aligned.
    pub(super) fn head(&mut self, names: &[(&str, bool)], buffer: &mut Buffer) {
        let names = names.iter().map(|(name, is_number)| {
            let line = Line::from((*name).to_owned()).dim();
            Cell::Text(if *is_number { line.right_aligned() } else { line })
        });
        self.line(names.collect(), Style::new(), buffer);
    }

    /// Draws a line, if there is room.
    pub(super) fn line(&mut self, cells: Vec<Cell>, style: Style, buffer: &mut Buffer) {
        if self.area.height == 0 {
            return;
        }
        let at = Rect { height: 1, ..self.area };
        for (cell, column) in cells.into_iter().zip(&self.columns) {
            let column = Rect { y: at.y, ..*column };
            match cell {
                Cell::Text(line) => line.render(column, buffer),
                Cell::Curve(values) => curve(&values, column, buffer),
            }
        }
        buffer.set_style(at, style);
        self.area.y = self.area.y.saturating_add(1);
        self.area.height -= 1;
    }
}

/// The lines that are shown of `lines` in a place with this room: those around the one `at` which the reader is.
pub(super) fn visible(at: usize, lines: usize, room: usize) -> Range<usize> {
    let from = at.saturating_sub(room / 2).min(lines.saturating_sub(room));
    from..lines.min(from.saturating_add(room))
}

/// Draws a curve from its lowest to its highest value. Where there are more values than cells, a cell shows the last of its
/// values.
fn curve(values: &[Option<f64>], area: Rect, buffer: &mut Buffer) {
    let finite = || values.iter().flatten().copied().filter(|value| value.is_finite());
    let (low, high) = (finite().fold(f64::MAX, f64::min), finite().fold(f64::MIN, f64::max));
    let height = |value: f64| {
        let ratio = (value - low) / (high - low);
        // A constant is half high.
        let ratio = if ratio.is_finite() { ratio } else { 0.5 };
        1 + to_u64(HEIGHTS.iter().filter(|height| ratio >= **height).count())
    };
    let cells = usize::from(area.width).min(values.len());
    let of_cell = |cell: usize| {
        let end = (cell + 1) * values.len() / cells;
        let value = values.get(end.checked_sub(1)?).copied().flatten();
        value.filter(|value| value.is_finite()).map(height)
    };
    let heights: Vec<Option<u64>> = (0..cells).map(of_cell).collect();
    let curve = Sparkline::default().data(heights).max(FULL).absent_value_symbol("·");
    curve.render(area, buffer);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(values: &[Option<f64>], width: u16) -> String {
        let area = Rect::new(0, 0, width, 1);
        let mut buffer = Buffer::empty(area);
        curve(values, area, &mut buffer);
        buffer.content().iter().map(|cell| cell.symbol()).collect()
    }

    #[test]
    fn a_curve_rises_with_its_values() {
        let values = |values: &[f64]| values.iter().copied().map(Some).collect::<Vec<_>>();
        assert_eq!(drawn(&values(&[0.0, 1.0, 2.0, 3.5, 7.0]), 8), "▁▂▃▅█   ");
        assert_eq!(drawn(&values(&[5.0, 5.0]), 2), "▅▅");
        assert_eq!(drawn(&[Some(2.0), None, Some(1.0)], 4), "█·▁ ");
        assert_eq!(drawn(&[], 2), "  ");
        let many: Vec<f64> = (0..1000).map(f64::from).collect();
        assert_eq!(drawn(&values(&many), 8), "▁▂▃▄▅▆▇█");
    }

    #[test]
    fn the_readers_line_is_always_visible() {
        assert_eq!(visible(0, 3, 10), 0..3);
        assert_eq!(visible(0, 1000, 10), 0..10);
        assert_eq!(visible(500, 1000, 10), 495..505);
        assert_eq!(visible(999, 1000, 10), 990..1000);
        assert_eq!(visible(999, 1000, 1), 999..1000);
        assert_eq!(visible(0, 0, 0), 0..0);
    }
}
