//! `--parquet FILE`, in a build with the feature `parquet`; another one says how to get it.

#[cfg(not(feature = "parquet"))]
pub(crate) use without::{check, write};
#[cfg(feature = "parquet")]
pub(crate) use written::{check, write};

#[cfg(not(feature = "parquet"))]
mod without {
    use std::path::Path;

    use fwdlab_archive::catalogue::Table;

    use crate::exit::WrongArguments;

    /// Refuses, before anything is read.
    pub(crate) fn check(path: &Path) -> anyhow::Result<()> {
        let text = format!(
            "--parquet: {}: this fwdlab was built without it; build it with cargo build --release \
             --features parquet, or use --csv",
            path.display()
        );
        Err(WrongArguments(text).into())
    }

    pub(crate) fn write(path: &Path, _: &Table) -> anyhow::Result<()> {
        check(path)
    }
}

#[cfg(feature = "parquet")]
mod written {
    use std::path::Path;
    use std::sync::Arc;

    use fwdlab_archive::catalogue::{Cell, Table};
    use parquet::basic::{LogicalType, Repetition, Type as Physical};
    use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DataType, DoubleType, Int64Type};
    use parquet::file::properties::WriterProperties;
    use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
    use parquet::schema::types::Type;

    use crate::catalogue;
    use crate::exit::WrongArguments;

    pub(crate) fn check(_: &Path) -> anyhow::Result<()> {
        Ok(())
    }

    /// Writes the table, every column optional and of the narrowest type that holds its cells.
    pub(crate) fn write(path: &Path, table: &Table) -> anyhow::Result<()> {
        if let Some(name) = table.shared_name() {
            let text =
                format!("--parquet: two columns are named {name:?}; name one otherwise (AS)");
            return Err(WrongArguments(text).into());
        }
        catalogue::write("--parquet", path, &bytes(table)?)
    }

    fn bytes(table: &Table) -> anyhow::Result<Vec<u8>> {
        let kinds: Vec<Physical> = (0..table.columns.len())
            .map(|column| kind(table, column))
            .collect();
        let mut fields = Vec::new();
        for (name, kind) in table.columns.iter().zip(&kinds) {
            let mut field =
                Type::primitive_type_builder(name, *kind).with_repetition(Repetition::OPTIONAL);
            if *kind == Physical::BYTE_ARRAY {
                field = field.with_logical_type(Some(LogicalType::String));
            }
            fields.push(Arc::new(field.build()?));
        }
        let schema = Type::group_type_builder("fwdlab")
            .with_fields(fields)
            .build()?;
        let properties = Arc::new(WriterProperties::builder().build());
        let mut file = Vec::new();
        let mut writer = SerializedFileWriter::new(&mut file, Arc::new(schema), properties)?;
        let mut group = writer.next_row_group()?;
        for (column, kind) in kinds.iter().enumerate() {
            let cells = table.rows.iter().map(|row| &row[column]);
            match kind {
                Physical::BOOLEAN => put::<BoolType>(&mut group, cells, |cell| match cell {
                    Cell::Boolean(value) => Some(*value),
                    _ => None,
                }),
                Physical::INT64 => put::<Int64Type>(&mut group, cells, |cell| match cell {
                    Cell::Integer(number) => Some(*number),
                    _ => None,
                }),
                Physical::DOUBLE => put::<DoubleType>(&mut group, cells, |cell| match cell {
                    Cell::Real(number) => Some(*number),
                    #[allow(
                        clippy::cast_precision_loss,
                        reason = "beside numbers that are no whole ones"
                    )]
                    Cell::Integer(number) => Some(*number as f64),
                    _ => None,
                }),
                _ => put::<ByteArrayType>(&mut group, cells, |cell| match cell {
                    Cell::Null => None,
                    cell => Some(ByteArray::from(catalogue::plain(cell).into_bytes())),
                }),
            }?;
        }
        group.close()?;
        writer.close()?;
        Ok(file)
    }

    /// The type that holds all cells of a column; text where it holds several kinds, or nothing.
    fn kind(table: &Table, column: usize) -> Physical {
        let mut kind = None;
        for row in &table.rows {
            let of_cell = match &row[column] {
                Cell::Null => continue,
                Cell::Boolean(_) => Physical::BOOLEAN,
                Cell::Integer(_) => Physical::INT64,
                Cell::Real(_) => Physical::DOUBLE,
                Cell::Text(_) => Physical::BYTE_ARRAY,
            };
            kind = Some(match kind {
                None => of_cell,
                Some(kind) if kind == of_cell => kind,
                Some(Physical::INT64 | Physical::DOUBLE)
                    if matches!(of_cell, Physical::INT64 | Physical::DOUBLE) =>
                {
                    Physical::DOUBLE
                }
                Some(_) => Physical::BYTE_ARRAY,
            });
        }
        kind.unwrap_or(Physical::BYTE_ARRAY)
    }

    fn put<'a, T: DataType>(
        group: &mut SerializedRowGroupWriter<'_, &mut Vec<u8>>,
        cells: impl Iterator<Item = &'a Cell>,
        value: impl Fn(&Cell) -> Option<T::T>,
    ) -> anyhow::Result<()> {
        let cells: Vec<Option<T::T>> = cells.map(value).collect();
        let levels: Vec<i16> = cells.iter().map(|cell| i16::from(cell.is_some())).collect();
        let values: Vec<T::T> = cells.into_iter().flatten().collect();
        let Some(mut column) = group.next_column()? else {
            anyhow::bail!("--parquet: there are fewer columns than in its schema");
        };
        column
            .typed::<T>()
            .write_batch(&values, Some(&levels), None)?;
        Ok(column.close()?)
    }

    #[cfg(test)]
    mod tests {
        use std::fs::File;

        use parquet::file::reader::{FileReader as _, SerializedFileReader};
        use parquet::record::Field;

        use super::*;

        fn written(table: &Table) -> SerializedFileReader<File> {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("table.parquet");
            write(&path, table).unwrap();
            SerializedFileReader::new(File::open(path).unwrap()).unwrap()
        }

        #[test]
        fn a_table_reads_back() {
            let table = Table {
                columns: ["text", "number", "whole", "flag", "mixed", "none"]
                    .map(str::to_owned)
                    .into(),
                rows: vec![
                    vec![
                        Cell::Text("é\"\n".into()),
                        Cell::Real(0.5),
                        Cell::Integer(-3),
                        Cell::Boolean(true),
                        Cell::Integer(1),
                        Cell::Null,
                    ],
                    vec![
                        Cell::Null,
                        Cell::Integer(2),
                        Cell::Null,
                        Cell::Boolean(false),
                        Cell::Text("x".into()),
                        Cell::Null,
                    ],
                ],
            };
            let reader = written(&table);
            let rows: Vec<Vec<Field>> = reader
                .get_row_iter(None)
                .unwrap()
                .map(|row| {
                    let row = row.unwrap();
                    row.get_column_iter()
                        .map(|(_, field)| field.clone())
                        .collect()
                })
                .collect();
            let text = |text: &str| Field::Str(text.into());
            assert_eq!(
                rows,
                [
                    vec![
                        text("é\"\n"),
                        Field::Double(0.5),
                        Field::Long(-3),
                        Field::Bool(true),
                        text("1"),
                        Field::Null
                    ],
                    vec![
                        Field::Null,
                        Field::Double(2.0),
                        Field::Null,
                        Field::Bool(false),
                        text("x"),
                        Field::Null
                    ],
                ]
            );
        }

        #[test]
        fn a_table_without_rows_is_a_file_too() {
            let table = Table {
                columns: vec!["x".into()],
                rows: vec![],
            };
            let reader = written(&table);
            assert_eq!(reader.metadata().file_metadata().num_rows(), 0);
        }
    }
}
