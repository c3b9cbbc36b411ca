-- Add labels to a document (CO-4).
--
-- Arguments: tenant_id, document_id, labels (array)
UPDATE documents
SET labels = (
    SELECT json_agg(label ORDER BY label)
    FROM (SELECT json_array_elements_text(coalesce(labels, '[]')) UNION SELECT unnest(%(labels)s::text[]))
         AS joined (label))
WHERE tenant_id = %(tenant_id)s AND document_id = %(document_id)s
